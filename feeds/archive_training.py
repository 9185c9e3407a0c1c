"""Run operations of Spark, so that Java loads the classes that simulations and stream jobs need.

`feeds.class_archive` runs this module in a process whose Java writes its loaded classes when it ends.
"""

from __future__ import annotations

import tempfile

import pandas as pd
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from feeds.spark import spark_session


def _run_batches(spark: SparkSession, folder: str) -> None:
    """Run joins, windows, aggregates and Python functions over a small table, and write it as Parquet."""
    rows = pd.DataFrame({"id": range(100), "name": [f"n{i}" for i in range(100)]})
    table = spark.createDataFrame(rows)
    by_part = Window.partitionBy("part").orderBy("id")
    ranked = table.withColumn("part", F.col("id") % 4).withColumn("row", F.row_number().over(by_part))
    ranked.write.partitionBy("part").parquet(folder)
    stored = spark.read.parquet(folder)
    stored.groupBy("part").applyInPandas(lambda group: group.head(1), schema=stored.schema).collect()
    counts = stored.groupBy("name").agg(F.count("id").alias("count"), F.max("row").alias("row"))
    table.join(counts, "name").orderBy("name").limit(10).toPandas()


def _run_stream(spark: SparkSession, folder: str, checkpoint: str) -> None:
    """Run a streaming aggregate over the table once."""

    def collect(batch: DataFrame, _number: int) -> None:
        batch.collect()

    stream = spark.readStream.schema("id long, name string, row int, part int").parquet(folder)
    counts = stream.groupBy("part").count().writeStream.outputMode("complete").foreachBatch(collect)
    counts.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    """Run the operations in a session of their own."""
    with spark_session("local[2]") as spark, tempfile.TemporaryDirectory() as folder:
        _run_batches(spark, f"{folder}/rows")
        _run_stream(spark, f"{folder}/rows", f"{folder}/checkpoint")


if __name__ == "__main__":
    main()
