import numpy as np
from pyspark.sql import functions as F

from simulator.chance import generator, uniform, uniforms

COUNT = 20_000


def _looks_uniform(draws):
    counts = np.bincount((draws * 20).astype(int), minlength=20)
    expected = len(draws) / 20
    # Chi-square with 19 degrees of freedom: 43.8 is exceeded once in a thousand; the seed is fixed.
    return counts.min() > 0 and ((counts - expected) ** 2 / expected).sum() < 43.8


def test_arrays_are_uniform_and_depend_on_every_part_of_the_id():
    ids = np.arange(COUNT)
    draws = uniforms(1, "table", "column", ids)
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    assert _looks_uniform(draws)
    for other in (
        uniforms(2, "table", "column", ids),
        uniforms(1, "other", "column", ids),
        uniforms(1, "table", "other", ids),
        uniforms(1, "table", "column", ids, 0),
        uniforms(1, "table", "column", ids, 1),
    ):
        assert _looks_uniform(other)
        assert abs(np.corrcoef(draws, other)[0, 1]) < 0.03


def test_a_row_does_not_depend_on_the_others():
    ids = np.arange(100)
    draws = uniforms(1, "table", "column", ids)
    assert uniforms(1, "table", "column", 17) == draws[17]
    assert (uniforms(1, "table", "column", ids[::-1]) == draws[::-1]).all()


def test_generators_are_keyed_by_row():
    first = generator(1, "table", "column", 3).uniform(size=4)
    assert (generator(1, "table", "column", 3).uniform(size=4) == first).all()
    assert (generator(1, "table", "column", 4).uniform(size=4) != first).all()


def test_columns_are_uniform_and_independent_of_partitions(spark):
    def draws(partitions, seed=1):
        frame = spark.range(0, COUNT, 1, partitions)
        drawn = frame.select("id", uniform(seed, "table", "column", F.col("id")).alias("u"))
        table = drawn.toArrow().sort_by("id")
        return table["u"].to_numpy()

    assert _looks_uniform(draws(1))
    assert draws(1).min() >= 0.0
    assert draws(1).max() < 1.0
    assert (draws(1) == draws(7)).all()
    assert abs(np.corrcoef(draws(1), draws(1, seed=2))[0, 1]) < 0.03
