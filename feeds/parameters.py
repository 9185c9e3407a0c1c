"""Parameters that are declared once: name, type, bounds, default and meaning, with pydantic.

Commands make their options, their help and the reference from the declarations (`cli/options.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails


@dataclass(frozen=True, slots=True)
class Shown:
    """Notes on the option of a parameter that its type, bounds and default do not give."""

    unit: str = ""
    flag: str = ""
    """If it is not the field's name."""
    metavar: str = ""
    limit: str = ""
    """The allowed values, if a validator decides on them."""
    is_secret: bool = False
    """Whether the value must not be shown."""


def _existing(path: Path) -> Path:
    """Return the path of an existing file; a name that is too long is none."""
    try:
        is_file = path.is_file()
    except OSError:
        is_file = False
    if not is_file:
        raise ValueError("must be an existing file")
    return path


ExistingFile = Annotated[Path, AfterValidator(_existing)]


class ParameterError(ValueError):
    """A parameter is outside its limits; the message names it, its value and the limit."""


class Parameters(BaseModel):
    """Immutable values that are validated when the object is made.

    Raises
    ------
    ParameterError
        If one is outside its limits, or has an unknown name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=False)

    def __init__(self, **given: Any) -> None:  # noqa: ANN401
        try:
            super().__init__(**given)
        except ValidationError as error:
            fields = type(self).model_fields
            raise ParameterError("; ".join(_message(one, fields) for one in error.errors())) from None

    def changed(self, **values: Any) -> Self:  # noqa: ANN401
        """Return a copy with other values."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | values)

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters by name, ready for JSON; paths as the file's name only."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: one.name if isinstance(one, Path) else one for name, one in values.items()}


def bounds(field: Any) -> tuple[float | None, float | None]:  # noqa: ANN401
    """Return the minimum and maximum of a field; None if there is no limit."""
    found: dict[str, float] = {}
    for one in field.metadata:
        found |= {side: getattr(one, side) for side in ("ge", "le") if hasattr(one, side)}
    return found.get("ge"), found.get("le")


def _message(error: ErrorDetails, fields: dict[str, Any]) -> str:
    """Return the message for an invalid value."""
    if not error["loc"]:  # raised by a rule about several values
        return str(error["ctx"]["error"]) if "ctx" in error else error["msg"]
    name = str(error["loc"][0])
    return f"{name}{_mistake(error, fields[name])}" if name in fields else f"{name} is not a parameter"


def _mistake(error: ErrorDetails, field: Any) -> str:  # noqa: ANN401
    """Return what follows the name of a field in the message: its value and its limits."""
    low, high = bounds(field)
    match error["type"]:
        case "greater_than_equal" | "less_than_equal" | "finite_number":
            return f" is {error['input']}, must be within {low}..{high}"
        case "value_error" if any(isinstance(one, Shown) and one.is_secret for one in field.metadata):
            return f": {error['ctx']['error']}"
        case "value_error":
            return f" is {error['input']!r}, {error['ctx']['error']}"
        case _:
            return f" is {error['input']!r}: {error['msg'][0].lower()}{error['msg'][1:]}"
