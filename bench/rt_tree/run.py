"""`bench rt-tree`: rt-tree.txt section 6, Figures 6 to 10, Table 1; and the line-up of ap-tree.txt.

Each experiment has four groups of new objects: points and areas, of 6 to 20 and of 100 to 1,000 keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from bench.ap_tree.run import Setting, measure
from bench.ap_tree.variants import VARIANTS as OTHERS
from bench.ap_tree.variants import Make
from bench.ap_tree.workload import ApTreeParameters
from bench.datasets import SOURCES
from bench.errors import BenchError
from bench.reports import Progress, Row
from bench.variants import chosen
from index.baselines.rt_tree import RtTree
from index.baselines.rt_tree.orders import ORDERS
from index.batches import ObjectBatch
from index.contracts import ClauseIndex
from index.square import Square

SHORT, LONG = (6, 20), (100, 1_000)
AREA_SIDE = 0.01
"""Of objects with areas: sides up to this share of the space's. The paper does not say."""


def _ordered(
    name: str,
    order: str,
    square: Square,
    history: ObjectBatch,  # noqa: ARG001 - nothing is learnt from objects
    parameters: ApTreeParameters,  # noqa: ARG001
) -> ClauseIndex:
    return RtTree(name, square, order)


VARIANTS: dict[str, Make] = {
    **OTHERS,
    **{
        f"{name}-{order}": partial(_ordered, name, order)
        for name in ("rt-plus-tree", "rt-plus-plus-tree")
        for order in ORDERS
    },
}
"""By name: those of `bench ap-tree`, and orders of tokens."""

_TREES = ("rt-tree", "rt-plus-tree", "rt-plus-plus-tree")
_OTHER = ("rt-plus-plus-tree", "ir-tree-subscriptions", "spatial-first", "keyword-first")
_LINE_UP = (
    *("ap-tree", "rt-plus-plus-tree", "iq-tree-subscriptions", "rq-tree", "inverted-grid"),
    *("dict", "numba-dict", "strtree"),
)


def _groups(base: ApTreeParameters) -> list[tuple[str, ApTreeParameters]]:
    """Return the four groups of objects."""
    return [
        (
            f"{length} {shape}",
            replace(
                base,
                words_min=words[0],
                words_max=words[1],
                object_side=side,
            ),
        )
        for length, words in (("short", SHORT), ("long", LONG))
        for shape, side in (("points", 0.0), ("areas", AREA_SIDE))
    ]


def _each(base: ApTreeParameters, names: Sequence[str]) -> list[Setting]:
    label = {"x": "group", "y": "us_per_object_batch"}
    return [
        Setting(name, {"group": group, **label}, parameters)
        for group, parameters in _groups(base)
        for name in names
    ]


def _figure_10(base: ApTreeParameters) -> list[Setting]:
    label = {"x": "subscriptions", "y": "us_per_object_batch"}
    return [
        Setting(_TREES[-1], {"group": group, **label}, replace(parameters, subscriptions=count))
        for group, parameters in _groups(base)
        for count in (max(1, base.subscriptions * share // 5) for share in (1, 2, 3, 4, 5))
    ]


EXPERIMENTS: dict[str, Callable[[ApTreeParameters], list[Setting]]] = {
    "figure-6": lambda base: _each(base, [f"rt-plus-tree-{order}" for order in ORDERS]),
    "figure-7": lambda base: _each(base, _TREES),
    "figure-8": lambda base: _each(base, _OTHER),
    "figure-10": _figure_10,
    "line-up": lambda base: [Setting(name, {}, base) for name in _LINE_UP],
}
"""By name. `figure-8` with other data is Figure 9; bytes_per_subscription of `figure-7` are Table 1."""


def run(
    progress: Progress,
    *,
    experiments: Sequence[str],
    variants: Sequence[str],
    data: Sequence[str],
    budget_s: float,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Run experiments on data sets; `shape` are fields of ApTreeParameters.

    Raises
    ------
    BenchError
        If an experiment, a variant or a data set is not known, or a file is not there.
    """
    for experiment in experiments:
        if experiment not in EXPERIMENTS:
            raise BenchError(f"experiment is {experiment!r}, must be one of {', '.join(EXPERIMENTS)}")
    wanted = chosen(variants, VARIANTS)
    base = ApTreeParameters(**cast("Any", shape))
    rows: list[Row] = []
    for name in data:
        source = SOURCES[name]()
        for experiment in experiments:
            settings = [one for one in EXPERIMENTS[experiment](base) if one.variant in wanted]
            for number, setting in enumerate(settings):
                progress(experiment, number, len(settings))
                rows.append(
                    {
                        "experiment": experiment,
                        "variant": setting.variant,
                        "data": source.name,
                        **setting.label,
                        **measure(
                            setting.variant, source, setting.parameters, budget_s, progress, VARIANTS
                        ),
                    }
                )
            progress(experiment, len(settings), len(settings))
    return rows
