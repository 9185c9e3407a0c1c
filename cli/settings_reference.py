"""Generate docs/configuration.md from the settings: `python -m cli.settings_reference`."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

import click
from pydantic_settings import BaseSettings

from cli.options import Facts, facts_of, gateway_settings, server_settings

_HEAD = """\
# Configuration

The settings of the [server](#the-server), `nearcast serve`, and of the [gateway](#the-gateway), `nearcast
gateway`. Flags take precedence over environment variables, variables over the TOML file given with
`--config`, and the file over the defaults. Neither program starts with an invalid value: it prints a line
with the setting as it was given, the value and the limit. `--help` shows the same settings. `make
configuration` generates this page from the declarations of the settings (`server/settings.py`,
`gateway/settings.py`, `identity/settings.py`), and a test compares them.

## The server

```toml
# city.toml: nearcast serve --config city.toml
area = [14.18, 35.80, 14.58, 36.09]
store = "city.db"  # the first time with --create
metrics_port = 9464
```

"""
_GATEWAY = """
## The gateway

```toml
# gateway.toml: nearcast gateway --config gateway.toml
server = "10.0.0.7"
server_tls_roots = "roots.pem"
server_token_file = ["gateway.token"]
jwks = "keys.json"
origins = ["https://app.example.com"]
```

"""
_COLUMNS = """\
| flag | variable | in the file | default | allowed | meaning |
|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    return _HEAD + _table(server_settings()) + _GATEWAY + _table(gateway_settings())


def _table(model: type[BaseSettings]) -> str:
    rows = (_row(one, model) for one in facts_of(model).values())
    return _COLUMNS + "".join(f"{row}\n" for row in rows)


def _row(facts: Facts, model: type[BaseSettings]) -> str:
    flags = " ".join(f"`{flag}`" for flag in (facts.flag, facts.off_flag) if flag)
    variable = f"`{facts.variable}`{' (JSON list)' * facts.is_list}"
    choices = " ".join(f"`{one}`" for one in _choices(facts.name, model))
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


def _choices(name: str, model: type[BaseSettings]) -> tuple[str, ...]:
    """Return the choices of a setting, if its type has any."""
    kind = model.model_fields[name].annotation
    return get_args(kind) if get_origin(kind) is Literal else ()


if __name__ == "__main__":
    click.echo(page(), nl=False)
