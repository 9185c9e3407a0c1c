"""Experiments of ap-tree.txt section 5.1, Figures 10 to 18, peers, and slices of a rebuild, as data."""

from __future__ import annotations

from pydantic import Field

from bench import experiment as e

LIMITS_MS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
"""Limits of the histogram of slices."""


class ApTreeParameters(e.MessageParameters, e.BudgetParameters):
    """Size and shape of a run; the defaults are those of the paper, except for the sizes."""

    subscriptions: int = e.count(100_000, "Number of subscriptions.")
    objects: int = e.count(10_000, "Number of new objects to match.")
    history: int = e.count(
        20_000,
        "Number of earlier objects, from which indexes learn the frequencies of keywords.",
        least=0,
    )
    keywords_min: int = e.count(
        1, "Minimum number of keywords of a subscription; they are those of a random object."
    )
    keywords_max: int = e.count(5, "Maximum number of keywords of a subscription.")
    area_min: float = e.share(
        0.0001, "Minimum area of a range, as a fraction of the space; its centre is the object."
    )
    area_max: float = e.share(0.01, "Maximum area of a range, as a fraction of the space.")
    side_max: float | None = e.share(
        None, "In place of areas: sides are uniform up to this fraction of the side of the space."
    )
    is_general: bool = Field(
        False,
        description="Whether expressions are general (section 5.1.1), so that subscriptions have several "
        "clauses.",
    )
    theta_kl: float = Field(0.001, ge=0.0, description="Drift at which a node of the AP-Tree is rebuilt.")
    fanout: int = e.count(200, "Fanout of the AP-Tree.", least=2)
    leaf_max: int = e.count(40, "Maximum number of clauses in a leaf of the AP-Tree.")
    first_share: float = e.share(
        1.0, "Share of the subscriptions from which the index is built; the others are inserted later."
    )
    words_min: int = e.count(
        0,
        "Minimum number of keywords of a new object, from several drawn objects together; 0 for those "
        "of one object.",
        least=0,
    )
    words_max: int = e.count(0, "Maximum number of keywords of a new object.", least=0)
    object_side: float = e.share(
        0.0,
        "New objects have areas with sides that are uniform up to this fraction of the side of the "
        "space.",
    )
    audited: int = e.count(40, "Objects compared with the definition.", least=0)


MATCHING = {
    "subscriptions": "subscriptions",
    "us_per_object_median": "us per object",
    "us_per_object_p99": "us per object",
    "us_per_object_mean": "us per object",
    "us_per_object_batch": "us per object",
    "candidates_per_result": "clauses per result",
    "build_s": "s",
    "results_per_object": "clauses per object",
    "bytes_per_subscription": "bytes per subscription",
}
"""Metrics of a clause index, with units."""

_INSERTED = {
    "us_per_insert": "us per clause",
    "us_per_insert_settled": "us per clause, including rebuilds",
    "rebuilds": "nodes",
}
_MAIN = ("ap-tree", "iq-tree-subscriptions", "rq-tree", "inverted-grid")
_OURS = (
    *("ap-tree", "naive", "iq-tree-subscriptions", "rq-tree", "ss-index", "kk-index", "inverted-grid"),
    *(
        "rt-tree",
        "rt-plus-tree",
        "rt-plus-plus-tree",
        "ir-tree-subscriptions",
        "spatial-first",
        "keyword-first",
    ),
    *("dict", "numba-dict", "strtree", "postgresql"),
)


def _swept(
    figure: str, what: str, variants: tuple[str, ...], sweep: e.Sweep, x: str, **changes: object
) -> e.Experiment:
    """Return a figure of the time to match an object over the varied parameter."""
    log = "x" if x in {"area_max", "theta_kl"} else ""
    return e.Experiment(
        f"figure-{figure}",
        f"AP-Tree, Figure {figure}",
        f"time of a new object by {what}",
        variants,
        changes,
        sweep,
        metrics=_INSERTED if "first_share" in {x, *changes} else {},
        plots=(e.Lines(x, ("us_per_object_batch",), log=log),),
        reduced={"subscriptions": 50_000} if figure in {"14", "17"} else {},
    )


AP_TREE = e.Suite(
    "ap-tree",
    "boolean subscriptions that a new object matches: time per object",
    "bench.ap_tree.run:ClauseBenchmark",
    ApTreeParameters,
    metrics=MATCHING,
    plots=(e.Bars(("us_per_object_batch",), ("variant", "side_max")),),
    reduced={"subscriptions": 100_000, "budget_s": 20},
    about="Variants: ap-tree (HR), ap-tree-dp, -kpriority, -spriority, -trie-qd, -nr, -rarest-first; "
    "iq-tree-subscriptions, rq-tree, inverted-grid, naive; and common alternatives: dict and "
    "numba-dict (keyed by rarest keyword and cell), strtree (shapely), postgresql (GiST on boxes, "
    "text[]; a cluster of its own, where PostgreSQL is installed).",
    experiments=(
        _swept("10a", "fanout", ("ap-tree",), e.Over("fanout", (50, 100, 200, 400, 800)), "fanout"),
        _swept("10b", "leaf size", ("ap-tree",), e.Over("leaf_max", (5, 20, 40, 100, 400)), "leaf_max"),
        e.Experiment(
            "figure-11",
            "AP-Tree, Figure 11",
            "time of a new object by how the tree divides",
            (
                *("ap-tree", "ap-tree-dp", "ap-tree-kpriority", "ap-tree-spriority", "ap-tree-trie-qd"),
                "ap-tree-rarest-first",
            ),
            {"area_min": 0.00001, "area_max": 0.00001},
        ),
        e.Experiment("figure-12", "AP-Tree, Figure 12", "time of a new object by data set", _MAIN),
        _swept(
            "13",
            "the number of keywords",
            _MAIN,
            e.Over("keywords_max", (1, 2, 3, 4, 5), ("keywords_min",)),
            "keywords_max",
        ),
        _swept(
            "14",
            "the area of ranges",
            _MAIN,
            e.Over("area_max", (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1), ("area_min",)),
            "area_max",
        ),
        _swept(
            "15",
            "the number of subscriptions",
            _MAIN,
            e.Shares(("subscriptions",), (0.05, 0.25, 0.5, 1.0)),
            "subscriptions",
        ),
        _swept(
            "16",
            "the drift at which nodes are rebuilt",
            ("ap-tree",),
            e.Over("theta_kl", (0.0001, 0.001, 0.01, 0.1, 0.5)),
            "theta_kl",
            first_share=0.2,
        ),
        _swept(
            "17",
            "the share of subscriptions from which a tree is built",
            (*_MAIN, "ap-tree-nr"),
            e.Over("first_share", (0.1, 0.3, 0.5, 0.7, 0.9)),
            "first_share",
        ),
        _swept(
            "18",
            "the number of keywords of general expressions",
            _MAIN,
            e.Over("keywords_max", (3, 4, 5, 6, 7), ("keywords_min",)),
            "keywords_max",
            is_general=True,
        ),
        e.Experiment(
            "peers",
            "",
            "all indexes and common alternatives, by the sides of ranges",
            _OURS,
            sweep=e.Over("side_max", (0.01, 0.1)),
        ),
        e.Experiment(
            "rebuild",
            "",
            "duration of slices while a whole tree is rebuilt in the background",
            metrics={
                "slices": "slices",
                "rebuild_s": "s",
                "slice_ms_max": "ms",
                "slice_cpu_ms_max": "ms of CPU",
                **{f"slices_under_{limit:g}_ms": "slices" for limit in LIMITS_MS},
            },
            plots=(e.Bars(tuple(f"slices_under_{limit:g}_ms" for limit in LIMITS_MS)),),
            benchmark="bench.ap_tree.rebuild:RebuildBenchmark",
        ),
    ),
)
