"""Experiments of lamps.txt section 7, tables and figures, and of anchored regions, as data."""

from __future__ import annotations

from pydantic import Field

from bench import experiment as e
from nearcast.limits import DEFAULT_LIMITS


class LampsParameters(e.TopKParameters, e.TrajectoryParameters, e.BudgetParameters):
    """Size and shape of a run; the defaults are those of the paper, except for the sizes."""

    subscriptions: int = e.count(100_000, "|S|.")
    objects: int = e.count(100_000, "|O_init|.")
    ticks: int = e.count(10, "Number of ticks of one second.", least=2, most=600)
    updates: int = e.count(100, "f: objects generated and expired per tick.", most=100_000)
    expired_share: float = e.share(0.1, "epsilon: share of expirations among the updates.")
    alpha: float | None = Field(
        None,
        ge=DEFAULT_LIMITS.alpha_min,
        le=DEFAULT_LIMITS.alpha_max,
        description="alpha of all subscriptions; by default each has its own, uniform in (0, 1).",
    )
    frequent_percent: float = Field(
        0.5, ge=0.0, le=100.0, description="Share of the keywords that have a quadtree in IQF, figure-9."
    )
    audited: int = e.count(
        200,
        "Number of results compared with the oracle, half of them in the middle of the run, half "
        "at the end.",
        least=2,
    )
    warm_up_s: int = e.count(
        180,
        "Time for which devices move before the first tick, so that their regions have different ages: "
        "devices leave new regions less often.",
        least=0,
        most=3_600,
    )


_TWO = ("lamps-without-sq-tree", "lamps")
_THREE = ("lamps-without-sq-tree", "lamps-without-iqf", "lamps")
_SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)


def _swept(
    figure: int, what: str, variants: tuple[str, ...], sweep: e.Over | e.Shares, **small: object
) -> e.Experiment:
    """Return a figure of the update time over the varied parameter."""
    (x,) = sweep.names if isinstance(sweep, e.Shares) else (sweep.name,)
    return e.Experiment(
        f"figure-{figure}",
        f"Lamps, Figure {figure}",
        f"update time of a tick by {what}",
        variants,
        sweep=sweep,
        plots=(e.Lines(x, ("update_ms_median",)),),
        reduced=small,
    )


LAMPS = e.Suite(
    "lamps",
    "update time of a tick: objects generated, expired, devices moved",
    "bench.lamps.benchmark:LampsBenchmark",
    LampsParameters,
    metrics={
        "subscriptions": "subscriptions",
        "objects": "objects",
        "build_s": "s",
        "region_us": "us per region",
        "memory_bytes": "bytes",
        "update_ms_median": "ms per tick",
        "update_ms_p95": "ms per tick",
        "generated_ms_median": "ms per tick",
        "expired_ms_median": "ms per tick",
        "moved_ms_median": "ms per tick",
    },
    plots=(e.Bars(("generated_ms_median", "expired_ms_median", "moved_ms_median")),),
    reduced={"subscriptions": 20_000, "objects": 20_000, "ticks": 6, "budget_s": 40},
    about="Variants: the systems of Table 3, and ours: anchored-0 to anchored-10 (b), anchored-cost (b "
    "by cost) and anchored-cost-ahead (and anchors ahead).",
    experiments=(
        e.Experiment(
            "table-3",
            "Lamps, Tables 3 and 4",
            "update time and memory of each method",
            ("naive", "lamps-without-asr", *_THREE),
        ),
        e.Experiment(
            "figure-9",
            "Lamps, Figure 9",
            "retrieval time and memory of IQF by the share of keywords that have a quadtree",
            sweep=e.Over("frequent_percent", (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)),
            metrics={"retrieval_us": "us per subscription"},
            plots=(e.Lines("frequent_percent", ("retrieval_us",)),),
            benchmark="bench.lamps.structures:FrequentKeywords",
        ),
        e.Experiment(
            "figure-10",
            "Lamps, Figure 10",
            "time to construct a safe region: local ones (LSR) and ellipses (ASR)",
            ("lamps-without-asr", "lamps"),
            plots=(e.Bars(("region_us",)),),
        ),
        e.Experiment(
            "figure-11",
            "Lamps, Figure 11",
            "error of the expected number of common keywords at a node, by the number of subscriptions",
            sweep=e.Shares(("subscriptions",), _SHARES),
            metrics={"objects_seen": "objects", "error": "keywords"},
            plots=(e.Lines("subscriptions", ("error",)),),
            benchmark="bench.lamps.structures:Expectations",
        ),
        _swept(12, "k", _TWO, e.Over("k_max", (5, 10, 15, 20))),
        _swept(13, "the number of subscriptions", _TWO, e.Shares(("subscriptions",), _SHARES)),
        _swept(14, "the number of objects", _TWO, e.Shares(("objects",), _SHARES)),
        _swept(15, "updates per tick", _THREE, e.Over("updates", (50, 100, 150, 200))),
        _swept(16, "the share of expirations", _THREE, e.Over("expired_share", (0.0, 0.1, 0.2, 0.3))),
        _swept(17, "alpha", _THREE, e.Over("alpha", (0.1, 0.3, 0.5, 0.7, 0.9))),
        _swept(18, "text similarity", ("lamps",), e.Over("similarity", ("jaccard", "dice", "cosine"))),
        e.Experiment(
            "anchored",
            "",
            "the same ticks with anchored regions and the SQ+-tree",
            (
                *("lamps", "anchored-0", "anchored-5", "anchored-10"),
                *("anchored-cost", "anchored-cost-ahead"),
            ),
        ),
    ),
)
