"""A home of Spark for a local cluster, whose workers write below it."""

from __future__ import annotations

from pathlib import Path

import pyspark


def spark_home(folder: Path) -> Path:
    """Make a folder that has all of Spark's, and is not Spark's own."""
    home = folder / "spark"
    home.mkdir()
    for path in Path(pyspark.__path__[0]).iterdir():
        if path.name != "work":
            (home / path.name).symlink_to(path)
    return home
