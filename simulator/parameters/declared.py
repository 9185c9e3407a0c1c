"""Parameters that are declared once: name, type, bounds, default and meaning, with pydantic.

Commands make their options and their help from the declarations (`cli/parameter_options.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails


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
    if name not in fields:
        return f"{name} is not a parameter"
    low, high = bounds(fields[name])
    if error["type"] in ("greater_than_equal", "less_than_equal", "finite_number"):
        return f"{name} is {error['input']}, must be within {low}..{high}"
    if error["type"] == "value_error":
        return f"{name} is {error['input']!r}, {error['ctx']['error']}"
    return f"{name} is {error['input']!r}: {error['msg'][0].lower()}{error['msg'][1:]}"
