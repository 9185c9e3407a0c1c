"""Experiments of rt-tree.txt section 6, Figures 6 to 10, Table 1; and the AP-Tree's line-up, as data."""

from __future__ import annotations

from bench import experiment as e
from bench.ap_tree.experiments import MATCHING, ApTreeParameters

SHORT, LONG = (6, 20), (100, 1_000)
AREA_SIDE = 0.01
"""Objects with areas have sides up to this share of the space's. The paper does not give it."""
ORDERS = ("random", "df", "idf", "local")
"""Orders of tokens."""

GROUPS = e.Steps(
    lambda _base: [
        e.Step(
            {"words_min": words[0], "words_max": words[1], "object_side": side},
            {"group": f"{length} {shape}"},
        )
        for length, words in (("short", SHORT), ("long", LONG))
        for shape, side in (("points", 0.0), ("areas", AREA_SIDE))
    ]
)
"""Four groups of new objects: points and areas, of 6 to 20 and of 100 to 1,000 keywords."""

_TREES = ("rt-tree", "rt-plus-tree", "rt-plus-plus-tree")


def _grouped(figure: int, source: str, what: str, variants: tuple[str, ...]) -> e.Experiment:
    return e.Experiment(f"figure-{figure}", f"R^t-tree, {source}", what, variants, sweep=GROUPS)


RT_TREE = e.Suite(
    "rt-tree",
    "boolean subscriptions that a new object matches, by groups of objects: time per object",
    "bench.ap_tree.run:ClauseBenchmark",
    ApTreeParameters,
    metrics=MATCHING,
    plots=(e.Bars(("us_per_object_batch",), ("group", "variant")),),
    reduced={"subscriptions": 30_000, "objects": 2_000, "budget_s": 6, "data": ("messages", "uniform")},
    about="Variants: rt-tree, rt-plus-tree and rt-plus-plus-tree (with -random, -df, -idf, -local: "
    "orders of tokens), ir-tree-subscriptions, spatial-first, keyword-first, and all of the suite "
    "ap-tree. Figure 8 with other data is Figure 9; bytes_per_subscription of Figure 7 are Table 1.",
    experiments=(
        _grouped(6, "Figure 6", "orders of tokens", tuple(f"rt-plus-tree-{one}" for one in ORDERS)),
        _grouped(7, "Figure 7, Table 1", "the three trees", _TREES),
        _grouped(
            8,
            "Figures 8 and 9",
            "R^t++ compared with other structures",
            ("rt-plus-plus-tree", "ir-tree-subscriptions", "spatial-first", "keyword-first"),
        ),
        e.Experiment(
            "figure-10",
            "R^t-tree, Figure 10",
            "R^t++ by the number of subscriptions",
            (_TREES[-1],),
            sweep=e.Each(GROUPS, e.Shares(("subscriptions",), (0.2, 0.4, 0.6, 0.8, 1.0))),
            plots=(e.Lines("subscriptions", ("us_per_object_batch",), by="group"),),
        ),
        e.Experiment(
            "line-up",
            "",
            "all clause indexes with the objects of the AP-Tree paper",
            (
                *("ap-tree", "rt-plus-plus-tree", "iq-tree-subscriptions", "rq-tree", "inverted-grid"),
                *("dict", "numba-dict", "strtree"),
            ),
            plots=(e.Bars(("us_per_object_batch",)),),
        ),
    ),
)
