"""Notes in the declaration of a setting, in addition to its type, bounds and default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from feeds.parameters import Shown

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class InRealTime(Generic[_Number]):
    """A default for real time; in virtual time it is 0, so that no device is late unless requested."""

    value: _Number

    def __call__(self, settings: Mapping[str, Any]) -> _Number:
        """Return the default, given the settings that were read before."""
        return type(self.value)(0) if settings.get("virtual_time") else self.value


Milliseconds = Annotated[int, Shown(unit="milliseconds")]
Hours = Annotated[float, Shown(unit="hours")]
Days = Annotated[float, Shown(unit="days")]
Seconds = Annotated[float, Shown(unit="seconds")]
PerSecond = Annotated[float, Shown(unit="a second")]
Metres = Annotated[float, Shown(unit="metres")]
MetresPerSecond = Annotated[float, Shown(unit="metres a second")]
