"""`nearcast`: the group of the commands that the installed packages allow."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import click

from nearcast.version import installed_version
from safe_region.extras import how_to_install

PACKAGES: dict[str, tuple[str, ...]] = {
    "": (),
    "server": (
        "cryptography",
        "grpc_health",
        "jwt",
        "numba",
        "platformdirs",
        "pydantic_settings",
        "rich",
    ),
    "gateway": ("aiohttp", "cryptography", "jwt", "prometheus_client", "pydantic_settings", "uvloop"),
    "server,gateway": ("aiohttp", "grpc_health", "numba", "platformdirs", "rich", "uvloop"),
    "simulator": ("matplotlib", "osmium", "pyarrow", "pyspark", "redis", "rich", "shapely"),
}
"""By extra, some of the packages that it adds to the smaller extras."""


class _Place(NamedTuple):
    """Location and requirements of a command.

    Parameters
    ----------
    module, name
        Module of the command, and its name there.
    extra
        Extra of pyproject.toml that the command needs; empty for the packages of the SDK.
    """

    module: str
    name: str
    extra: str


COMMANDS = {
    "serve": _Place("cli.serve", "serve", "server"),
    "gateway": _Place("cli.gateway", "gateway", "gateway"),
    "map": _Place("cli.map", "map_", "gateway"),
    "compile": _Place("cli.compile", "compile_", "server"),
    "indexes": _Place("cli.indexes", "indexes", "server"),
    "idf": _Place("cli.idf", "idf", "server"),
    "plan": _Place("cli.plan", "plan", ""),
    "status": _Place("cli.status", "status", ""),
    "cluster": _Place("cli.cluster", "cluster", ""),
    "inspect": _Place("cli.inspect_command", "inspect", ""),
    "forget": _Place("cli.forget", "forget", ""),
    "retract": _Place("cli.retract", "retract", ""),
    "top": _Place("cli.top", "top", "server"),
    "token": _Place("cli.token", "token", "server"),
    "certificate": _Place("cli.certificate", "certificate", "server"),
    "simulate": _Place("cli.simulate", "simulate", "simulator"),
    "replay": _Place("cli.replay", "replay", "simulator"),
    "demo": _Place("cli.demo", "demo", "simulator"),
    "dev": _Place("cli.dev.command", "dev", "server,gateway"),
    "bench": _Place("cli.bench", "bench", "simulator"),
    "store": _Place("cli.store", "store", "server"),
    "stream": _Place("cli.stream", "stream", "simulator"),
}


class _Commands(click.Group):
    """A group of the commands that can run. Its help names the others and the extras that they need."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401
        super().__init__(**given)
        is_there = {extra: all(map(_is_installed, names)) for extra, names in PACKAGES.items()}
        self._missing = {name: one.extra for name, one in COMMANDS.items() if not is_there[one.extra]}
        for name, one in COMMANDS.items():
            if name not in self._missing:
                self.add_command(getattr(import_module(one.module), one.name), name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; raise an error that names the missing extra if it cannot run."""
        if cmd_name in self._missing:
            extra = self._missing[cmd_name]
            ctx.fail(f"{cmd_name} needs packages that are not installed: {how_to_install(extra)}")
        return super().get_command(ctx, cmd_name)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands that cannot run, by missing extra."""
        super().format_epilog(ctx, formatter)
        for extra in dict.fromkeys(self._missing.values()):
            names = ", ".join(name for name, needed in self._missing.items() if needed == extra)
            with formatter.section(f"Not installed ({how_to_install(extra)})"):
                formatter.write_text(names)


def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(installed_version(), prog_name="nearcast")
def app() -> None:
    """Exact results for moving devices, with few messages in between."""
