"""Sphinx reads this: the documentation as a site (`make docs`).

The source folder is the repository, so that links between pages are right there and on the site.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from pygments.lexers.special import TextLexer

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

project = "nearcast"
copyright = "the nearcast authors"  # noqa: A001 - the name is Sphinx's
version = release = "0.1.0"
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/decisions/*.md",
    "docs/how-to/*.md",
    "docs/reference/*.md",
    "examples/README.md",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nitpicky = False
highlight_language = "text"
myst_enable_extensions = ["deflist", "smartquotes"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_google_docstring = False

html_theme = "furo"
html_title = "nearcast"
html_static_path: list[str] = []
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

_COMMANDS = "docs/commands"


def _options(command: click.Command, context: click.Context) -> list[str]:
    records = [one.get_help_record(context) for one in command.get_params(context)]
    rows = [(names, text) for names, text in filter(None, records) if names != "--help"]
    if not rows:
        return []
    cells = [f"| `{names}` | {text.replace('|', '/').replace('<', '&lt;')} |" for names, text in rows]
    return ["| option | |", "|---|---|", *cells, ""]


def _command_lines(command: click.Command, path: str, parent: click.Context | None) -> list[str]:
    context = click.Context(
        command, info_name=path.rsplit(" ", 1)[-1], parent=parent, max_content_width=200
    )
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    text = (command.help or "").replace("\b", "").split("\f", 1)[0]
    lines = [f"## {path}", "", text, "", f"`{usage}`", "", *_options(command, context)]
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            found = command.get_command(context, part)
            if found is not None and not found.hidden:
                lines += _command_lines(found, f"{path} {part}", context)
    return lines


def _write_commands(app: object, docname: str, source: list[str]) -> None:
    """Append the reference of all commands to its page."""
    del app
    if docname == _COMMANDS:
        from cli.app import app as group  # noqa: PLC0415 - imports the product

        context = click.Context(group, info_name="nearcast")
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            if found is not None and not found.hidden:
                source[0] += "\n".join(["", *_command_lines(found, f"nearcast {name}", context)])


def setup(app: object) -> None:
    """Let Sphinx know what is generated."""
    app.add_lexer("textproto", TextLexer)  # type: ignore[attr-defined]
    app.connect("source-read", _write_commands)  # type: ignore[attr-defined]
