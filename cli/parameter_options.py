"""Options of commands that simulate, made from the parameters of simulations: each is declared once.

Only what is given is handed on: defaults and limits are the model's. It is imported when options are
asked for, so that other commands begin without it.
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
"""Of parameters whose flag is not their name."""

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
    """A command with an option for parameters of a simulation, behind its own.

    Parameters
    ----------
    parameters
        Names of those that it has; all unless told otherwise.
    without
        Names of those that it does not have.
    model
        Returns where they are declared; imported when options are asked for.
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
        """Return the command's own options, the parameters, and the one for help."""
        *own, last = super().get_params(ctx)
        options = _options(self._model)
        names = tuple(options) if self._parameters is None else self._parameters
        return [*own, *(options[name] for name in names if name not in self._without), last]


class ParameterCommand(_WithParameters):
    """A command that makes a simulation."""


class ParameterGroup(_WithParameters, click.Group):
    """A group of commands that makes a simulation when it is called without one of them."""


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that are given, without those that are to be as usual."""
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
