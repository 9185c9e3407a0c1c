"""Generate docs/configuration.md from the settings: `python -m cli.settings_reference`."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

import click

from cli.settings_options import Facts, facts_of_settings

_HEAD = """\
# Configuration

The settings of `nearcast serve`. Flags take precedence over environment variables, variables over the
TOML file given with `--config`, and the file over the defaults. The server does not start with an invalid
value: it prints a line with the setting as it was given, the value and the limit. `nearcast serve --help`
shows the same settings. `make configuration` generates this page from the declaration of the settings
(`server/settings.py`), and a test compares the two.

```toml
# city.toml: nearcast serve --config city.toml
area = [14.18, 35.80, 14.58, 36.09]
store = "city.db"  # the first time with --create
metrics_port = 9464
```

| flag | variable | in the file | default | allowed | meaning |
|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    return _HEAD + "".join(f"{_row(one)}\n" for one in facts_of_settings())


def _row(facts: Facts) -> str:
    flags = " ".join(f"`{flag}`" for flag in (facts.flag, facts.off_flag) if flag)
    variable = f"`{facts.variable}`{' (JSON list)' * facts.is_list}"
    choices = " ".join(f"`{one}`" for one in _choices(facts.name))
    cells = (
        flags,
        variable,
        f"`{facts.name}`",
        _default(facts),
        facts.limit or choices,
        facts.description,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(facts: Facts) -> str:
    """Format a default: a value as code, a description as text."""
    if facts.default in {"required", "none", "on", "off"}:
        return facts.default
    value, comma, rest = facts.default.partition(", ")
    return f"`{value}`{comma}{rest}"


def _choices(name: str) -> tuple[str, ...]:
    """Return the choices of a setting, if its type has any."""
    from server.settings import ServerSettings  # noqa: PLC0415

    kind = ServerSettings.model_fields[name].annotation
    return get_args(kind) if get_origin(kind) is Literal else ()


if __name__ == "__main__":
    click.echo(page(), nl=False)
