"""A command's options, made from the fields of the server's settings, where each is declared once.

Values are handed on as text: the settings read and judge them as they do those of variables. They are
imported when options are asked for, so that other commands begin without them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, get_args, get_origin

import click

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from server.setting_notes import Shown

_METAVARS = {"int": "INTEGER", "float": "FLOAT", "str": "TEXT", "Path": "FILE"}


class SettingsCommand(click.Command):
    """A command with an option for every setting of the server, by the name of its field."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options, the settings, and the one for help."""
        *own, last = super().get_params(ctx)
        return [*own, *_options(), last]


@cache
def _options() -> tuple[click.Option, ...]:
    from server.settings import ServerSettings  # noqa: PLC0415

    return tuple(_option(name, field) for name, field in ServerSettings.model_fields.items())


def _option(name: str, field: FieldInfo) -> click.Option:
    shown = _shown(field)
    flag = shown.flag or f"--{name.replace('_', '-')}"
    help_text = f"{field.description}  [{'; '.join(_facts(name, field))}]"
    if field.annotation is bool:
        return click.Option(
            [f"{flag}/--no-{flag.removeprefix('--')}", name], default=None, help=help_text
        )
    metavar = shown.metavar or _metavar(field.annotation)
    return click.Option([flag, name], multiple=_is_list(field), metavar=metavar, help=help_text)


def _facts(name: str, field: FieldInfo) -> list[str]:
    """Default, limit with unit, and variable."""
    from server.settings import ServerSettings  # noqa: PLC0415

    shown = _shown(field)
    limit = " ".join(part for part in (shown.limit or _limit(field), shown.unit) if part)
    variable = f"{ServerSettings.model_config['env_prefix']}{name}".upper()
    facts = [_default(field), limit, f"env var: {variable}{', a JSON list' * _is_list(field)}"]
    return [fact for fact in facts if fact]


def _shown(field: FieldInfo) -> Shown:
    from server.setting_notes import Shown  # noqa: PLC0415

    return next((one for one in field.metadata if isinstance(one, Shown)), Shown())


def _default(field: FieldInfo) -> str:
    from server.setting_notes import InRealTime  # noqa: PLC0415

    if field.is_required():
        return "required"
    if isinstance(field.default_factory, InRealTime):
        return f"default: {_text(field.default_factory.value)}, in virtual time 0"
    return f"default: {_text(field.default)}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value in (None, (), "") else str(value)


def _limit(field: FieldInfo) -> str:
    """Put the bounds of a field in words."""
    bounds: dict[str, object] = {}
    for one in field.metadata:
        bounds |= {side: getattr(one, side) for side in ("ge", "le") if hasattr(one, side)}
    match bounds:
        case {"ge": least, "le": most}:
            return f"{_text(least)} to {_text(most)}"
        case {"ge": least}:
            return f"at least {_text(least)}"
        case {"le": most}:
            return f"at most {_text(most)}"
    return ""


def _is_list(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is tuple


def _metavar(kind: object) -> str:
    """Name what is asked for, as click does."""
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if get_origin(kind) is Annotated or get_origin(kind) is tuple:
        return _metavar(get_args(kind)[0])
    if parts := [part for part in get_args(kind) if part is not type(None)]:
        return "|".join(_metavar(part) for part in parts)
    return _METAVARS[getattr(kind, "__name__", "")]
