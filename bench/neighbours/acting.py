"""`python -m bench.neighbours.acting ADDRESS SECONDS`: callers that act, in their own process.

The first line of standard input has their acts and tokens; they start to act at the second line. The
process yields the CPU to all others of the machine (nice), so that its effect on others comes through the
server. At the end it writes the outcomes of its calls, and exits without closing anything, as a killed
caller does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
from typing import Any

from bench.neighbours.acts import ACTS, NamedAct
from bench.neighbours.caller import Caller

_NICE = 10
_LATE_S = 1.0
"""An act that does not end by itself is interrupted this long after its time."""
_AGAIN_S = 0.01
"""An act that the server ends, by ending its stream or connection, is repeated after this pause."""


async def act(address: str, seconds: float, orders: list[dict[str, str]]) -> dict[str, Any]:
    """Let each caller act; return the outcomes of their calls, by act."""
    callers = {
        order["act"]: Caller(address, order["token"], order["name"], ACTS[order["act"]].world.word)
        for order in orders
    }

    async def one(name: str, caller: Caller) -> None:
        caller.begin(seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds + _LATE_S):
                while caller.is_on:
                    await _act_once(ACTS[name], caller)
                    await asyncio.sleep(_AGAIN_S)

    await asyncio.gather(*(one(name, caller) for name, caller in callers.items()))
    return {name: dict(caller.counts) for name, caller in callers.items()}


async def _act_once(named: NamedAct, caller: Caller) -> None:
    """Act until the time is over or the server ends the stream or connection."""
    try:
        await named.act(caller)
    except Exception as error:  # noqa: BLE001 - counted in the row: any error may occur
        caller.count_error(error)


def main() -> None:
    """Act, and exit at once."""
    os.nice(_NICE)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    address, seconds = sys.argv[1], float(sys.argv[2])
    orders = json.loads(sys.stdin.readline())
    print(flush=True)  # noqa: T201 - it is ready
    if sys.stdin.readline():
        print(json.dumps(asyncio.run(act(address, seconds, orders))), flush=True)  # noqa: T201
    os._exit(0)


if __name__ == "__main__":
    main()
