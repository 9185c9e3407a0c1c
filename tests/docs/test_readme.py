"""What the README shows, runs."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from server.settings import load_settings
from tests.support.programs import printed
from tests.support.servers import serving

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def commands() -> list[str]:
    """Every `nearcast ...` command line that the README shows."""
    found = re.findall(r"^nearcast .*$", README, re.MULTILINE)
    return found + re.findall(r"`(nearcast [^`]*)`", README)


@pytest.mark.processes
async def test_the_example_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (serve,) = [line for line in commands() if line.startswith("nearcast serve --area")]
    area = serve.split()[3]
    async with serving(
        load_settings({"area": area, "store": str(tmp_path / "city.db"), "port": 0})
    ) as server:
        for _ in range(2):  # the second run is like the first
            out = await printed(code, "localhost:7433", server.port, tmp_path)
        coordinator = server.coordinator
        assert not coordinator.sessions
        assert not coordinator.matching.objects, "it leaves nothing behind"
    (shown,) = re.findall(r"It prints\n\n```\n(.*?)```", README, re.DOTALL)
    assert out == shown


@pytest.mark.parametrize("line", commands())
def test_every_command_exists_with_these_flags(line):
    from cli.app import app  # noqa: PLC0415

    _, name, *arguments = line.split()
    command = app.commands[name]
    while isinstance(command, click.Group) and arguments[0] in command.commands:
        command = command.commands[arguments.pop(0)]
    context = command.make_context(name, list(arguments), resilient_parsing=True)
    given = {word for word in arguments if word.startswith("--")} - {"--help"}
    known = {flag for parameter in command.get_params(context) for flag in parameter.opts}
    assert given <= known


def test_every_make_target_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", README)) <= targets


def pages() -> list[Path]:
    docs = ROOT / "docs"
    roots = [
        ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md")
    ]
    return [*roots, *sorted(docs.rglob("*.md"))]


def anchors(page: Path) -> set[str]:
    """What a link to a part of a page may say: its headings, as GitHub writes them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in headings}


def test_every_link_leads_somewhere():
    for page in pages():
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
            if target.startswith("http"):
                continue
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(file), f"{page.name} links to {target}#{anchor}"
