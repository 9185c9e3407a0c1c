"""Options of commands that simulate, built from the parameters of simulations. Each is declared once.

A command passes on only the options that the user gives; the model has the defaults and limits. The model
is imported when click needs the options, so that other commands start without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from cli.paths import LocalPath

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from simulator.parameters.declared import Parameters

FLAGS = {
    "map_file": "--map",
    "places_file": "--places",
    "texts_file": "--texts",
    "places": "--place-count",
    "begin": "--from",
    "end": "--to",
}
"""Flags of parameters, where a flag differs from the name."""

_TYPES: dict[type, click.ParamType[Any]] = {
    int: click.INT,
    float: click.FLOAT,
    str: click.STRING,
    bool: click.BOOL,
    Path: LocalPath(),
}


def _simulation_parameters() -> type[Parameters]:
    from simulator.parameters import SimulationParameters  # noqa: PLC0415

    return SimulationParameters


class _WithParameters(click.Command):
    """A command with options for the parameters of a simulation, after its own options.

    Parameters
    ----------
    given
        Positional arguments of a command of click.
    parameters
        Names of the parameters with an option; None for all.
    without
        Names of the parameters without an option.
    model
        Returns the model that declares the parameters; it is called when click needs the options.
    more
        Named arguments of a command of click.
    """

    def __init__(
        self,
        *given: Any,  # noqa: ANN401
        parameters: tuple[str, ...] | None = None,
        without: tuple[str, ...] = (),
        model: Callable[[], type[Parameters]] = _simulation_parameters,
        **more: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*given, **more)
        self._parameters = parameters
        self._without = without
        self._model = model

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of the command, of the parameters, and for help."""
        *own, last = super().get_params(ctx)
        options = _options(self._model)
        names = tuple(options) if self._parameters is None else self._parameters
        return [*own, *(options[name] for name in names if name not in self._without), last]


class ParameterCommand(_WithParameters):
    """A command that creates a simulation."""


class ParameterGroup(_WithParameters, click.Group):
    """A group of commands that creates a simulation if it is called without a subcommand."""


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that the user gives, without those that keep their defaults."""
    return {name: value for name, value in values.items() if value is not None}


@cache
def _options(model: Callable[[], type[Parameters]]) -> dict[str, click.Option]:
    return {name: _option(name, field) for name, field in model().model_fields.items()}


def _option(name: str, field: FieldInfo) -> click.Option:
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    kind = next((one for one in (field.annotation, *get_args(field.annotation)) if one in _TYPES), str)
    facts = [] if field.default is None else [f"default: {_text(field.default)}"]
    facts += [limit] if (limit := _limit(field)) else []
    shown = f"  [{'; '.join(facts)}]" if facts else ""
    if kind is bool:
        both = f"{flag}/--no-{flag.removeprefix('--')}"
        return click.Option([both, name], default=None, help=f"{field.description}{shown}")
    return click.Option([flag, name], type=_TYPES[kind], help=f"{field.description}{shown}")


def _limit(field: FieldInfo) -> str:
    from simulator.parameters.declared import bounds  # noqa: PLC0415

    low, high = (None if one is None else _text(one) for one in bounds(field))
    if low is None and high is None:
        return ""
    return f"{low}..{high}" if low and high else f"at least {low}" if low else f"at most {high}"


def _text(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)
