"""Notes in the declaration of a setting, in addition to its type, bounds and default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class Shown:
    """Notes for the help of a setting that its type, bounds and default do not give."""

    unit: str = ""
    flag: str = ""
    """If it is not the field's name."""
    metavar: str = ""
    limit: str = ""
    """The allowed values, if a validator decides on them."""
    is_secret: bool = False
    """Whether the value must not be shown."""


@dataclass(frozen=True, slots=True)
class InRealTime(Generic[_Number]):
    """A default for real time; in virtual time it is 0, so that no device is late unless requested."""

    value: _Number

    def __call__(self, settings: Mapping[str, Any]) -> _Number:
        """Return the default, given the settings that were read before."""
        return type(self.value)(0) if settings.get("virtual_time") else self.value


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
Milliseconds = Annotated[int, Shown(unit="milliseconds")]
Days = Annotated[float, Shown(unit="days")]
Seconds = Annotated[float, Shown(unit="seconds")]
PerSecond = Annotated[float, Shown(unit="a second")]
Metres = Annotated[float, Shown(unit="metres")]
MetresPerSecond = Annotated[float, Shown(unit="metres a second")]
