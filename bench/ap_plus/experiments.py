"""Experiments of ap-tree.txt section 5.2, Figures 19 to 27: moving ranges, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench import experiment as e

PERIOD_S = 30
"""Seconds of a timestamp."""


class ApPlusParameters(e.MessageParameters, e.BudgetParameters):
    """Size and shape of a run.

    Defaults are among the values of the paper's Table 3, whose marks of defaults our text of it has lost.
    Sizes and `copies_max` are ours.
    """

    roads: Literal["city", "oldenburg", "bay-area"] = Field(
        "city",
        description="Roads on which ranges move: a generated city, or road networks of real cities.",
    )
    subscriptions: int = e.count(100_000, "Number of subscriptions and of devices with ranges.")
    objects: int = e.count(100_000, "Number of live objects.")
    timestamps: int = e.count(10, "Number of measured steps of 30 s.", most=1_000)
    learning: int = e.count(
        2,
        "Number of steps before, from which indexes learn how ranges move; after them, trees are "
        "rebuilt.",
        least=0,
        most=1_000,
    )
    mobility: float = e.share(0.2, "Share of the ranges that move at each timestamp.")
    velocity: float = Field(1.0, ge=0.0, description="Factor of the speeds that the roads allow.")
    arrival_share: float = Field(
        0.1,
        ge=0.0,
        description="Objects published at each timestamp, as a fraction of those at the start.",
    )
    lifetime: float = Field(10.0, ge=0.0, description="Mean lifetime of objects, in timestamps.")
    area: float = Field(
        0.0001, ge=1e-12, le=1.0, description="Area of a range, as a fraction of the space."
    )
    keywords_min: int = e.count(
        1, "Minimum number of keywords of a subscription; they are those of a random object."
    )
    keywords_max: int = e.count(5, "Maximum number of keywords of a subscription.")
    copies_max: int = e.count(100, "Maximum number of copies of an object in the AP+-Tree.")
    batch: int = e.count(1_000, "Objects and ranges per batch.")
    singles: int = e.count(
        200, "Objects and ranges that are processed one by one, at each timestamp.", least=0
    )
    devices: int = e.count(1_000, "Number of devices in Figures 26 and 27.", most=1_000_000)
    arrivals_per_s: float = Field(
        300.0, ge=0.0, le=100_000.0, description="Objects published per second in Figures 26 and 27."
    )
    audited: int = e.count(100, "Subscriptions compared with the definition.", least=0)

    @property
    def arrivals(self) -> int:
        """Return the number of objects that are published at each timestamp."""
        return max(1, round(self.objects * self.arrival_share))

    @property
    def steps(self) -> int:
        """Return the number of timestamps, including those for learning."""
        return self.learning + self.timestamps

    @property
    def seconds(self) -> int:
        """Return the length of a drive in seconds."""
        return max(1, round(self.steps * PERIOD_S * self.velocity))


_PUBLISHED = ("ap-plus-tree", "iq-plus-tree", "rq-plus-tree", "ss-index", "kk-index")
_MAIN = (*_PUBLISHED, "pairs")
_IN_ALL = "us_per_move_in_all"
_NAMES = ("variant", "subscriptions")
_SHARES = (0.01, 0.03, 0.1)
"""Devices, as shares of the subscriptions of the other figures: each checks its region every second."""
_RATES = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Objects that are published, as multiples of those of the other figures."""

_COUNTS = e.Steps(
    lambda base: [
        e.Step({"devices": count, "arrivals_per_s": base.arrivals / PERIOD_S}, {"devices": count})
        for count in (max(10, round(base.subscriptions * share)) for share in _SHARES)
    ]
)
_ARRIVALS = e.Steps(
    lambda base: [
        e.Step(
            {"devices": max(10, round(base.subscriptions * _SHARES[0])), "arrivals_per_s": rate},
            {"arrivals_per_s": round(rate, 2)},
        )
        for rate in (times * base.arrivals / PERIOD_S for times in _RATES)
    ]
)


def _swept(figure: int, what: str, sweep: e.Sweep, x: str, y: str = _IN_ALL) -> e.Experiment:
    """Return a figure of the time of a move over the varied parameter."""
    return e.Experiment(
        f"figure-{figure}",
        f"AP-Tree, Figure {figure}",
        f"time of a move by {what}",
        _MAIN,
        sweep=sweep,
        plots=(e.Lines(x, (y,), log="x" if x == "area" else ""),),
    )


def _with_devices(figure: int, what: str, sweep: e.Sweep, x: str) -> e.Experiment:
    """Return a figure of the traffic of devices over the varied parameter."""
    columns = {
        "server_us_per_device_s": "us per device and second",
        "bytes_per_device_hour": "bytes",
        "positions_per_device_hour": "positions",
    }
    return e.Experiment(
        f"figure-{figure}",
        f"AP-Tree, Figure {figure}",
        f"traffic and the server's time by {what}",
        sweep=sweep,
        metrics={"devices": "devices", "reports_per_device_hour": "reports", **columns},
        plots=tuple(e.Lines(x, (y,), log="x" if x == "devices" else "") for y in columns),
        benchmark="bench.ap_plus.devices:DeviceBenchmark",
    )


AP_PLUS = e.Suite(
    "ap-plus",
    "objects that moving ranges start and cease to match: time per message and per move",
    "bench.ap_plus.run:MovingBenchmark",
    ApPlusParameters,
    metrics={
        "subscriptions": "subscriptions",
        "objects": "objects",
        "build_s": "s",
        "timestamps": "steps of 30 s",
        "us_per_message": "us per message",
        "us_per_message_batch": "us per message",
        "us_per_move": "us per move",
        "us_per_move_batch": "us per move",
        "us_rebuilding_per_move": "us per move",
        "us_per_move_in_all": "us per move",
        "changes_per_move": "changes per move",
        "candidates_per_move": "candidates per move",
        "rebuilds": "nodes",
        "bytes_per_pair": "bytes per subscription and object",
        "memory_mb": "MB",
    },
    plots=(e.Bars(("us_per_message_batch", _IN_ALL), _NAMES),),
    reduced={"subscriptions": 20_000, "objects": 20_000, "timestamps": 4, "budget_s": 15},
    about="Variants: ap-plus-tree; ap-plus-k and ap-plus-s, which store objects separately; "
    "iq-plus-tree, rq-plus-tree, ss-index, kk-index, as the paper describes them; pairs, the "
    "clause index and the object index of a server. Figures 26 and 27 have devices: "
    "ap-plus-periodic-30, ap-plus-safe, and anchored-cost-ahead, the method of a server; Elaps is "
    "omitted.",
    experiments=(
        e.Experiment(
            "figure-19",
            "AP-Tree, Figure 19",
            "time to insert an object, and of a move that finds nothing",
            _PUBLISHED,
            metrics={"us_per_insertion": "us per object", "us_per_location_update": "us per move"},
            plots=(e.Bars(("us_per_insertion", "us_per_location_update"), _NAMES),),
            benchmark="bench.ap_plus.run:PartsBenchmark",
        ),
        e.Experiment(
            "figure-20",
            "AP-Tree, Figure 20",
            "one tree of subscriptions and objects, beside two",
            ("ap-plus-tree", "ap-plus-k", "ap-plus-s"),
        ),
        e.Experiment("figure-21", "AP-Tree, Figure 21", "time of a message and of a move", _MAIN),
        _swept(
            22,
            "the share of ranges that move",
            e.Over("mobility", (0.1, 0.2, 0.4, 0.6, 0.8)),
            "mobility",
            "move_s_per_timestamp",
        ),
        _swept(23, "velocity", e.Over("velocity", (0.5, 1.0, 2.0, 3.0, 4.0)), "velocity"),
        _swept(24, "the area of ranges", e.Over("area", (1e-8, 1e-6, 1e-4, 1e-2, 1e-1)), "area"),
        _swept(
            25,
            "the number of subscriptions and objects",
            e.Shares(("subscriptions", "objects"), (0.2, 0.4, 0.6, 0.8, 1.0)),
            "subscriptions",
        ),
        _with_devices(26, "the number of devices", _COUNTS, "devices"),
        _with_devices(27, "the rate of publication", _ARRIVALS, "arrivals_per_s"),
    ),
)
