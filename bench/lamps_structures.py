"""Figures 9 and 11 of lamps.txt: what is measured inside the two indexes."""

from __future__ import annotations

from collections.abc import Callable

from bench.datasets import Dataset
from bench.lamps import LampsParameters, Progress
from bench.reports import Row

STRUCTURES: dict[str, Callable[[Dataset, LampsParameters, Progress], list[Row]]] = {}
