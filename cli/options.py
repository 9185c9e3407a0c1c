"""Options of a command, and facts about them for help and reference, from the model that declares them.

An option has the name of its field. Options of settings pass values on as text, which the settings parse
like those of variables. Options of parameters convert values. A command passes on only the options that
the user gives: the model has the defaults and limits. Models are imported when click needs the options,
so that other commands start without them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import click

from cli.paths import LocalPath

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from feeds.parameters import Parameters, Shown
    from gateway.settings import GatewaySettings
    from server.log_settings import LogSettings
    from server.settings import ServerSettings
    from streaming.parameters import StreamParameters

    Model = Callable[[], type[BaseModel]]

_METAVARS = {"int": "INTEGER", "float": "FLOAT", "str": "TEXT", "Path": "FILE"}
_TYPES: dict[type, click.ParamType[Any]] = {
    int: click.INT,
    float: click.FLOAT,
    bool: click.BOOL,
    Path: LocalPath(),
}


def server_settings() -> type[ServerSettings]:
    """Return the model of the server's settings."""
    from server.settings import ServerSettings  # noqa: PLC0415

    return ServerSettings


def log_settings() -> type[LogSettings]:
    """Return the model of the settings of the log of a cluster."""
    from server.log_settings import LogSettings  # noqa: PLC0415

    return LogSettings


def gateway_settings() -> type[GatewaySettings]:
    """Return the model of a gateway's settings."""
    from gateway.settings import GatewaySettings  # noqa: PLC0415

    return GatewaySettings


def simulation_parameters() -> type[Parameters]:
    """Return the model of the parameters of simulations."""
    from simulator.parameters import SimulationParameters  # noqa: PLC0415

    return SimulationParameters


def stream_parameters() -> type[StreamParameters]:
    """Return the model of the parameters of stream jobs."""
    from streaming.parameters import StreamParameters  # noqa: PLC0415

    return StreamParameters


class ModelCommand(click.Command):
    """A command with an option for each field of a model, after its own options.

    Parameters
    ----------
    given
        Positional arguments of a command of click.
    model
        Returns the model; it is called when click needs the options.
    only
        Names of the fields with an option; None for all.
    without
        Names of the fields without an option.
    more
        Named arguments of a command of click.
    """

    def __init__(
        self,
        *given: Any,  # noqa: ANN401
        model: Model,
        only: tuple[str, ...] | None = None,
        without: tuple[str, ...] = (),
        **more: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*given, **more)
        self._model, self._only, self._without = model, only, without

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of the command, of the model, and for help."""
        *own, last = super().get_params(ctx)
        options = _options(self._model)
        names = tuple(options) if self._only is None else self._only
        return [*own, *(options[name] for name in names if name not in self._without), last]


class ModelGroup(ModelCommand, click.Group):
    """A group of commands that has these options itself, for a call without a subcommand."""


class Facts(NamedTuple):
    """Facts about a field.

    Parameters
    ----------
    name
        Name of the field, and in a configuration file.
    flag
        Flag on the command line; for a switch, the flag that switches it on.
    off_flag
        Flag that switches it off; empty if it is not a switch.
    variable
        Environment variable; empty if there is none.
    default
        Description of the default; "required" if there is none.
    limit
        Description of the allowed values, with the unit; empty if all values are allowed.
    is_list
        Whether the user may pass it several times, and as a JSON list.
    is_secret
        Whether its value is never shown.
    description
        Description of the field.
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


def facts_of(model: type[BaseModel]) -> dict[str, Facts]:
    """Return the facts about the fields of a model by name: its own, then those that it inherits."""
    prefix: Any = model.model_config.get("env_prefix")  # of settings only
    names = sorted(model.model_fields, key=lambda name: name not in model.__annotations__)
    return {name: _facts(name, model.model_fields[name], prefix) for name in names}


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that the user gives, without those of options that are not used."""
    return {name: value for name, value in values.items() if value not in (None, ())}


@cache
def _options(model: Model) -> dict[str, click.Option]:
    declared = model()
    return {name: _option(declared.model_fields[name], one) for name, one in facts_of(declared).items()}


def _option(field: FieldInfo, facts: Facts) -> click.Option:
    is_required = field.is_required() and not facts.variable  # as click adds to the help
    default = facts.default if field.is_required() else f"default: {facts.default}"
    variable = f"env var: {facts.variable}{', a JSON list' * facts.is_list}" if facts.variable else ""
    notes = "; ".join(note for note in ("" if is_required else default, facts.limit, variable) if note)
    help_text = f"{facts.description}  [{notes}]" if notes else facts.description
    if facts.off_flag:
        return click.Option([f"{facts.flag}/{facts.off_flag}", facts.name], default=None, help=help_text)
    metavar = _shown(field).metavar or _metavar(field.annotation)
    return click.Option(
        [facts.flag, facts.name],
        type=None if facts.variable else _type(field),
        multiple=facts.is_list,
        required=is_required,
        metavar=metavar,
        help=help_text,
    )


def _type(field: FieldInfo) -> click.ParamType[Any] | None:
    """Return click's type of values; None for texts, and for values that the model converts."""
    from pydantic import BeforeValidator  # noqa: PLC0415

    annotation = field.annotation
    is_union = get_origin(annotation) in {Union, UnionType}
    parts = [one for one in get_args(annotation) if one is not type(None)] if is_union else [annotation]
    if len(parts) != 1:
        return None
    kind, *more = get_args(parts[0]) if get_origin(parts[0]) is Annotated else (parts[0],)
    is_converted = any(isinstance(one, BeforeValidator) for one in [*field.metadata, *more])
    return None if is_converted else _TYPES.get(kind)


def _facts(name: str, field: FieldInfo, prefix: str | None) -> Facts:
    shown = _shown(field)
    flag = shown.flag or f"--{name.replace('_', '-')}"
    return Facts(
        name,
        flag,
        f"--no-{flag.removeprefix('--')}" if field.annotation is bool else "",
        "" if prefix is None else f"{prefix}{name}".upper(),
        _default(field),
        " ".join(part for part in (shown.limit or _limit(field), shown.unit) if part),
        get_origin(field.annotation) is tuple,
        shown.is_secret,
        field.description or "",
    )


def _shown(field: FieldInfo) -> Shown:
    from feeds.parameters import Shown  # noqa: PLC0415

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
        return f"{value:.15g}"
    return "none" if value in (None, (), "") else str(value)


def _limit(field: FieldInfo) -> str:
    """Describe the bounds of a field."""
    from feeds.parameters import bounds  # noqa: PLC0415

    least, most = (None if one is None else _text(one) for one in bounds(field))
    if least is None:
        return "" if most is None else f"at most {most}"
    return f"at least {least}" if most is None else f"{least} to {most}"


def _metavar(kind: object) -> str:
    """Return the placeholder of a value, as click formats it."""
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if get_origin(kind) is Annotated or get_origin(kind) is tuple:
        return _metavar(get_args(kind)[0])
    if parts := [part for part in get_args(kind) if part is not type(None)]:
        return "|".join(_metavar(part) for part in parts)
    return _METAVARS[getattr(kind, "__name__", "")]
