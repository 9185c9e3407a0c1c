"""The devices of a replay in another program: an SDK in another language, behind a gateway.

The program reads a command a line from its input, as JSON, and responds to each with a line.
`clients/typescript/tools/replay_devices.ts` is such a program, and describes the commands.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nearcast import Boolean, Client, Counters, RegionMode, Spec, Subscription, SubscriptionState
from nearcast.protocol.specs import spec_message
from simulator.replay.audit import Place
from simulator.replay.fleet import Audited, DevicesOfReplay, are_fixed
from simulator.replay.options import ReplayError
from simulator.replay.report import ReplayReport
from simulator.workload.rows import Fix, SubscriptionRow

_LINE_BYTES_MAX = 1 << 28
"""A response with the results of all devices is one line."""

_STOP_S = 10.0
"""The time after which a program that has not ended is killed."""


@dataclass(slots=True)
class ProgramResult:
    """The result of a subscription, as the program last reported it.

    Parameters
    ----------
    id
        The number that the device gave to the subscription.
    spec
        The spec.
    state
        How exact the result is.
    idf_generation
        The generation of the weights by which it is exact.
    scored
        Ids and scores of the objects, best first.
    region
        None: the program keeps what the device holds.
    """

    id: int
    spec: Spec
    state: SubscriptionState = SubscriptionState.STALE
    idf_generation: int = 0
    scored: Sequence[tuple[int, float]] = ()
    region: None = None

    def read(self, response: list[Any]) -> None:
        """Take over the state, the generation of weights, the ids and the scores of a response."""
        state, generation, ids, scores = response
        self.state, self.idf_generation = SubscriptionState(state), int(generation)
        self.scored = list(zip(map(int, ids), scores, strict=True))


class ProgramDevices(DevicesOfReplay):
    """Devices by name, all in one program. A stationary subscription has a device of its own.

    Its parameters are those of `DevicesOfReplay`; the client is for the barrier between ticks.
    """

    def __init__(
        self, client: Client, rows: Iterable[SubscriptionRow], region: RegionMode, report: ReplayReport
    ) -> None:
        super().__init__(client, rows, region, report)
        self._places: dict[str, Place] = {}
        self._held: list[tuple[Place, ProgramResult]] = []
        self._counters = Counters()

    async def start(self, command: Sequence[str]) -> None:
        """Start the program.

        Raises
        ------
        ReplayError
            If it cannot be started.
        """
        pipe = asyncio.subprocess.PIPE
        self._name = " ".join(command)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, limit=_LINE_BYTES_MAX
            )
        except OSError as error:
            raise ReplayError(f"the program of the devices does not start: {error}") from None

    async def stop(self) -> None:
        """End the program: its input ends, and it is killed if that does not end it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def pass_time(self, now_ms: int) -> None:
        """Set the virtual time of the devices."""
        await self._call(op="passTime", timeMs=str(now_ms))

    async def move(self, fixes: Sequence[Fix]) -> None:
        """Set positions. A device that does not exist yet attaches, and subscribes.

        Raises
        ------
        ReplayError
            If the program has ended.
        """
        await self._call(op="publishing", seenId=str(self.seen_id))
        new = [fix for fix in fixes if fix.device_id not in self._places]
        known = [fix for fix in fixes if fix.device_id in self._places]
        self._places |= {fix.device_id: Place(fix.device_id, fix.lon, fix.lat) for fix in fixes}
        moves = [
            {
                "id": fix.device_id,
                "lon": fix.lon,
                "lat": fix.lat,
                "headingDeg": fix.heading_deg,
                "speedMps": fix.speed_mps,
            }
            for fix in known
        ]
        await self._call(op="move", fixes=moves)
        if new:
            await self._attach(new)

    async def sync(self) -> None:
        """Wait until no message is in transit, and no device waits for a response."""
        await self._call(op="sync")
        await self._client.sync()
        await self._call(op="sync")
        self._count(await self._call(op="counts"))

    async def load_results(self) -> None:
        """Read the results of all subscriptions, for an audit."""
        responses = await self._call(op="results")
        for (_, result), response in zip(self._held, responses, strict=True):
            result.read(response)

    def subscriptions(self, device_id: str) -> list[Subscription]:  # noqa: ARG002
        """Return nothing: the regions are in the other program."""
        return []

    def audited(self) -> Iterator[Audited]:
        """Yield every subscription with the position of its device."""
        for place, result in self._held:
            yield Audited(self._places.get(place.device_id, place), result)

    def counters(self) -> Counters:
        """Return the sums of the counters of all devices at the end of the last tick."""
        return self._counters

    async def finish(self) -> None:
        """Record the counts of the run."""
        self._count(await self._call(op="counts"))
        self._report.counters = self._counters

    async def _attach(self, fixes: Sequence[Fix]) -> None:
        """Attach devices, with their subscriptions, and those that stand at the places of others."""
        newcomers: list[tuple[Place, list[Spec]]] = []
        for fix in fixes:
            rows = self._wanted.pop(fix.device_id, [])
            moving = [row.spec(self._region) for row in rows if row.place is None]
            newcomers.append((self._places[fix.device_id], moving))
            for row in rows:
                if row.place is not None:
                    name = f"{row.device_id}-place-{row.subscription_id}"
                    newcomers.append((Place(name, *row.place), [row.spec(self._region)]))
                    self._report.stationary_subscriptions += 1
            self._report.devices += 1
            self._report.fixed_devices += are_fixed(moving)
        commands = [
            {**place._asdict(), "id": place.device_id, "specs": [_written(spec) for spec in specs]}
            for place, specs in newcomers
        ]
        numbers = await self._call(op="attach", devices=commands)
        for (place, specs), ids in zip(newcomers, numbers, strict=True):
            found = [ProgramResult(number, spec) for number, spec in zip(ids, specs, strict=True)]
            self._held += [(place, one) for one in found]
            self._report.subscriptions += len(found)
            self._report.boolean_subscriptions += sum(isinstance(spec, Boolean) for spec in specs)

    async def _call(self, **command: Any) -> Any:  # noqa: ANN401
        """Send a command and return the response."""
        source, sink = self._process.stdout, self._process.stdin
        if source is None or sink is None:
            raise ReplayError(f"{self._name} has no pipes")
        sink.write(json.dumps(command).encode() + b"\n")
        line = await source.readline()
        if not line:
            raise ReplayError(f"{self._name} ended with status {await self._process.wait()}")
        return json.loads(line)

    def _count(self, response: dict[str, Any]) -> None:
        self._counters = Counters(
            response["moves"],
            response["reports"],
            response["deltas"],
            response["objects"],
            response["bytesSent"],
            response["bytesReceived"],
        )
        for latency_ms in response["latenciesMs"]:
            self._report.latencies.add(latency_ms)


def _written(spec: Spec) -> str:
    return base64.b64encode(spec_message(spec).SerializeToString()).decode()
