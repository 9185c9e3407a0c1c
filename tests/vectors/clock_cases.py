"""Server time never goes back, whatever a welcome or a delta says; virtual time stands still."""

from __future__ import annotations

from tests.vectors.draws import Draws

_DAY_MS = 86_400_000
_NOW_MS = 1_700_000_000_000


def cases():
    yield {
        "name": "a server that is restarted with an earlier clock",
        "given": _given(5),
        "steps": _back(),
    }
    yield {"name": "virtual time", "given": _given(1000), "steps": _virtual()}
    yield {"name": "from virtual to real time", "given": _given(7), "steps": _both()}
    yield {"name": "a walk", "given": _given(123456789), "steps": _random_walk()}


def _given(steady_ms):
    return {"steady_ms": str(steady_ms)}


def _welcome(time_ms, *, is_virtual=False):
    return {"op": "welcome", "time_ms": str(time_ms), "is_virtual": is_virtual}


def _observe(time_ms):
    return {"op": "observe", "time_ms": str(time_ms)}


def _wait(ms):
    return {"op": "wait", "ms": ms}


def _back():
    return [
        _welcome(_NOW_MS),
        _wait(1000),
        _welcome(_NOW_MS + 400),
        _wait(300),
        _wait(300),
        _wait(1),
        _observe(_NOW_MS + 900),
        _observe(_NOW_MS + 1200),
        _wait(50),
        _observe(_NOW_MS + _DAY_MS),
        _wait(0),
        _welcome(0),
        _wait(_DAY_MS),
        _wait(_DAY_MS),
    ]


def _virtual():
    return [
        _welcome(10, is_virtual=True),
        _wait(1000),
        _observe(10),
        _observe(9),
        _observe(11),
        _welcome(5, is_virtual=True),
        _wait(5000),
        _observe(2**53 - 1),
    ]


def _both():
    return [_welcome(500, is_virtual=True), _wait(10), _welcome(400), _wait(99), _wait(2), _observe(5000)]


def _random_walk():
    draws, steps, time_ms = Draws(5), [_welcome(_NOW_MS)], _NOW_MS
    for _ in range(60):
        time_ms += draws.whole(-150, 260)
        steps.append(
            draws.one_of(
                (_wait(draws.whole(0, 300)), _welcome(time_ms), _observe(time_ms), _observe(time_ms))
            )
        )
    return steps
