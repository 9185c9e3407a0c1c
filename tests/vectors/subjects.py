"""The subjects of the vectors: a file each, in `proto/vectors`.

A subject has cases. A case has what is given and steps; each step has an operation, its input, and its
expected output. A *player* carries out the steps of one case.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.vectors import (
    area_cases,
    clock_cases,
    dwell_cases,
    expression_cases,
    frame_cases,
    ground_cases,
    keyword_cases,
    os_region_cases,
    range_cases,
    spec_cases,
    top_k_cases,
)
from tests.vectors.players import (
    AreaPlayer,
    ClockPlayer,
    DwellPlayer,
    ExpressionPlayer,
    FramePlayer,
    GroundPlayer,
    KeywordPlayer,
    RegionPlayer,
    SpecPlayer,
)
from tests.vectors.session_player import NextFixPlayer, OsRegionsPlayer, SessionPlayer
from tests.vectors.sessions import scripts, walks

FOLDER = Path(__file__).resolve().parents[2] / "proto" / "vectors"

Case = dict[str, Any]


class Subject(NamedTuple):
    """One file."""

    about: str
    cases: Callable[[], Iterable[Case]]
    """Makes the cases, without expected outputs."""
    player: Callable[[Any], Callable[[Any], Any]]
    """Starts a case from what is given; the result maps a step to its output."""
    relative_error: float = 0.0
    """Allowed difference of doubles; 0 if they are equal to the last bit."""


SUBJECTS = {
    "frames": Subject("Degrees to the plane", frame_cases.cases, FramePlayer),
    "areas": Subject(
        "Orientation, distances to areas, and whether areas meet boxes", area_cases.cases, AreaPlayer
    ),
    "top-k": Subject("Regions, ranking and ties of top-k subscriptions", top_k_cases.cases, RegionPlayer),
    "ranges": Subject("Regions and results of boolean subscriptions", range_cases.cases, RegionPlayer),
    "dwell": Subject("Dwell times", dwell_cases.cases, DwellPlayer),
    "clocks": Subject("Server time on the device", clock_cases.cases, ClockPlayer),
    "keywords": Subject("Normal form of keywords", keyword_cases.cases, KeywordPlayer),
    "expressions": Subject("Texts of expressions to clauses", expression_cases.cases, ExpressionPlayer),
    "specs": Subject("Specs that are known, and that are the same", spec_cases.cases, SpecPlayer),
    "ground": Subject("Distances on the ground, for display", ground_cases.cases, GroundPlayer, 1e-9),
    "sessions": Subject("Sessions, message by message", scripts.cases, SessionPlayer),
    "next-fix": Subject("Time to the next fix", scripts.next_fix_cases, NextFixPlayer, 1e-9),
    "os-regions": Subject(
        "Circles for the geofencing of phones", os_region_cases.cases, OsRegionsPlayer, 1e-9
    ),
    "walks": Subject("Long random sessions", walks.cases, SessionPlayer),
}


def played(subject: Subject, case: Case) -> Case:
    """Return a case with the outputs of the SDK as the expected ones."""
    player = subject.player(case["given"])
    steps = [{**step, "expected": player(copy.deepcopy(step))} for step in map(_input, case["steps"])]
    return {**case, "steps": steps}


def document(name: str) -> dict[str, Any]:
    """Return the content of a file."""
    subject = SUBJECTS[name]
    cases = [played(subject, case) for case in subject.cases()]
    return {
        "subject": name,
        "about": subject.about,
        "relative_error": subject.relative_error,
        "cases": cases,
    }


def _input(step: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in step.items() if key != "expected"}
