"""Options of commands that run on Spark: the master, and settings of Spark."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import click


class SparkChoice(NamedTuple):
    """The master of Spark, and additional settings."""

    master: str
    settings: dict[str, str]


class SparkSetting(click.ParamType[Any]):
    """A setting of Spark and its value."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument."""
        if isinstance(value, tuple):
            return value
        key, equals, found = str(value).partition("=")
        if not equals or not key.startswith("spark."):
            self.fail(f"{value!r} must be KEY=VALUE, with a key that begins with spark.", param, ctx)
        return key, found


_SHORT = {
    "driver_host": "spark.driver.host",
    "driver_memory": "spark.driver.memory",
    "executor_memory": "spark.executor.memory",
    "executor_cores": "spark.executor.cores",
}
"""Settings of Spark with a separate option, by option."""

_OPTIONS = (
    click.option(
        "--conf",
        "conf",
        type=SparkSetting(),
        multiple=True,
        help="A setting of Spark, in place of that of this command; repeat for more.",
    ),
    click.option(
        "--driver-host",
        help="Address at which executors reach this process, on a cluster.  [default: Spark's choice, "
        "or SPARK_LOCAL_IP]",
    ),
    click.option(
        "--driver-memory", default="2g", show_default=True, help="Memory of Spark's own process."
    ),
    click.option(
        "--executor-memory",
        help="Memory of an executor's Java process, on a cluster; Python and indexes need more in "
        "addition.  [default: 1g]",
    ),
    click.option(
        "--executor-cores", help="Cores of an executor, on a cluster.  [default: all cores of a worker]"
    ),
)


def spark_options(master: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options; the command gets the argument `spark`, a SparkChoice.

    Parameters
    ----------
    master
        Default master of Spark.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_choice(*arguments: Any, master: str, conf: Any, **given: Any) -> Any:  # noqa: ANN401
            short = {key: given.pop(name) for name, key in _SHORT.items()}
            settings = {key: value for key, value in short.items() if value is not None}
            return command(*arguments, spark=SparkChoice(master, settings | dict(conf)), **given)

        found: Callable[..., Any] = with_choice
        for option in reversed(_OPTIONS):
            found = option(found)
        where = "Spark master: local[*], spark://host:7077, yarn."
        return click.option("--master", default=master, show_default=True, help=where)(found)

    return decorated
