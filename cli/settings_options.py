"""Options of a command, built from the fields of a program's settings. Each is declared once.

The options pass values on as text: the settings parse and validate them like those of variables. The
settings are imported when click needs the options, so that other commands start without them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_origin

import click

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_settings import BaseSettings

    from identity.setting_notes import Shown

Program = Literal["serve", "gateway"]
"""A program with settings, by the name of its command."""

_METAVARS = {"int": "INTEGER", "float": "FLOAT", "str": "TEXT", "Path": "FILE"}


def settings_of(program: Program) -> type[BaseSettings]:
    """Return the declaration of the settings of a program."""
    if program == "gateway":
        from gateway.settings import GatewaySettings  # noqa: PLC0415

        return GatewaySettings
    from server.settings import ServerSettings  # noqa: PLC0415

    return ServerSettings


class SettingsCommand(click.Command):
    """A command with an option for every setting of its program, named after its field."""

    def __init__(self, *args: Any, program: Program, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **options)
        self._program = program

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of the command, of the settings, and for help."""
        *own, last = super().get_params(ctx)
        return [*own, *_options(self._program), last]


@cache
def _options(program: Program) -> tuple[click.Option, ...]:
    settings = settings_of(program)
    return tuple(_option(settings, name, field) for name, field in settings.model_fields.items())


class Facts(NamedTuple):
    """Facts about a setting.

    Parameters
    ----------
    name
        Name in the configuration file.
    flag
        Flag on the command line; for a switch, the flag that switches it on.
    off_flag
        Flag that switches it off; empty if it is not a switch.
    variable
        Environment variable.
    default
        Description of the default; "required" if there is none.
    limit
        Description of the allowed values, with the unit; empty if all values are allowed.
    is_list
        Whether the user may pass it several times, and as a JSON list.
    is_secret
        Whether its value is never shown.
    description
        Description of the setting.
    """

    name: str
    flag: str
    off_flag: str
    variable: str
    default: str
    limit: str
    is_list: bool
    is_secret: bool
    description: str


def facts_of_settings(program: Program) -> list[Facts]:
    """Return the facts about all settings of a program, in the order of declaration."""
    settings = settings_of(program)
    return [_facts(settings, name, field) for name, field in settings.model_fields.items()]


def _option(settings: type[BaseSettings], name: str, field: FieldInfo) -> click.Option:
    facts = _facts(settings, name, field)
    default = facts.default if field.is_required() else f"default: {facts.default}"
    variable = f"env var: {facts.variable}{', a JSON list' * facts.is_list}"
    notes = "; ".join(note for note in (default, facts.limit, variable) if note)
    help_text = f"{facts.description}  [{notes}]"
    if facts.off_flag:
        return click.Option([f"{facts.flag}/{facts.off_flag}", name], default=None, help=help_text)
    metavar = _shown(field).metavar or _metavar(field.annotation)
    return click.Option([facts.flag, name], multiple=facts.is_list, metavar=metavar, help=help_text)


def _facts(settings: type[BaseSettings], name: str, field: FieldInfo) -> Facts:
    shown = _shown(field)
    flag = shown.flag or f"--{name.replace('_', '-')}"
    return Facts(
        name,
        flag,
        f"--no-{flag.removeprefix('--')}" if field.annotation is bool else "",
        f"{settings.model_config['env_prefix']}{name}".upper(),
        _default(field),
        " ".join(part for part in (shown.limit or _limit(field), shown.unit) if part),
        _is_list(field),
        shown.is_secret,
        field.description or "",
    )


def _shown(field: FieldInfo) -> Shown:
    from identity.setting_notes import Shown  # noqa: PLC0415

    return next((one for one in field.metadata if isinstance(one, Shown)), Shown())


def _default(field: FieldInfo) -> str:
    from identity.setting_notes import InRealTime  # noqa: PLC0415

    if field.is_required():
        return "required"
    if isinstance(field.default_factory, InRealTime):
        return f"{_text(field.default_factory.value)}, in virtual time 0"
    return _text(field.default)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value in (None, (), "") else str(value)


def _limit(field: FieldInfo) -> str:
    """Describe the bounds of a field."""
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
    """Return the placeholder of a value, as click formats it."""
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if get_origin(kind) is Annotated or get_origin(kind) is tuple:
        return _metavar(get_args(kind)[0])
    if parts := [part for part in get_args(kind) if part is not type(None)]:
        return "|".join(_metavar(part) for part in parts)
    return _METAVARS[getattr(kind, "__name__", "")]
