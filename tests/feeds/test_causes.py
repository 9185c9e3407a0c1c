"""What is said of an error of Spark's, which has its own frames around that of a task."""

import os
import signal

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from feeds.causes import cause_of


def fail(batches):
    """End as a task does that has found something wrong."""
    list(batches)
    raise LookupError("the street is not in the map")


def die(batches):
    """End as a task does for whose writing there is no memory."""
    list(batches)
    os.kill(os.getpid(), signal.SIGBUS)


def test_an_error_of_sparks_own_is_its_first_line(spark):
    with pytest.raises(PySparkException) as caught:
        spark.read.parquet("/nowhere")
    assert cause_of(caught.value).startswith("[PATH_NOT_FOUND] Path does not exist")
    with pytest.raises(Py4JJavaError) as of_java:
        spark._jvm.java.util.ArrayList().get(7)  # noqa: SLF001 - an error of Java
    assert cause_of(of_java.value).startswith("java.lang.IndexOutOfBoundsException: Index 7 out of")


def error_of(query_of, spark):
    """The error of a stream of one row."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 1).load().select("value")
    query = rows.writeStream.foreachBatch(query_of).start()
    try:
        with pytest.raises((PySparkException, Py4JJavaError)) as caught:
            query.awaitTermination()
    finally:
        query.stop()
    return caught.value


@pytest.mark.parametrize(
    ("task", "expected"),
    [(fail, "LookupError: the street is not in the map"), (die, "a Python worker process was killed")],
)
def test_the_error_of_a_task_is_named(spark, task, expected):
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        spark.range(1).mapInArrow(task, "id long").collect()
    assert expected in cause_of(caught.value)
    error = error_of(lambda rows, _number: rows.mapInArrow(task, "value long").collect(), spark)
    assert expected in cause_of(error)
    assert "\n" not in cause_of(error)
