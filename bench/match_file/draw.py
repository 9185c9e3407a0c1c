"""Draw files for `nearcast bench match-file`, so that a run can be repeated without external data.

Subscriptions and objects are those of the suite ap-tree; keyword 17 is written `w17`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.ap_tree.experiments import ApTreeParameters
from bench.ap_tree.workload import draw
from bench.datasets import keyword_sets, source
from bench.errors import BenchError
from index.batches import Floats, Ints, KeywordLists


def draw_files(subscriptions: Path, objects: Path, parameters: ApTreeParameters) -> None:
    """Draw subscriptions and objects, and write each to a file.

    Parameters
    ----------
    subscriptions, objects
        Paths of the files, see `bench.match_file.tables`; existing files are overwritten.
    parameters
        Number, shape and source of the rows.

    Raises
    ------
    BenchError
        If the data does not exist, or a file cannot be written.
    """
    workload = draw(source(parameters.data), parameters)
    boxes, arrivals = workload.boxes, workload.arrivals
    corners = (boxes.x1_m, boxes.y1_m, boxes.x2_m, boxes.y2_m)
    _write(subscriptions, _lines(workload.ids, corners, workload.required))
    _write(objects, _lines(arrivals.ids, (arrivals.x_m, arrivals.y_m), arrivals.keywords))


def _lines(ids: Ints, columns: tuple[Floats, ...], keywords: KeywordLists) -> Iterator[str]:
    """Yield a line for each row; coordinates are written so that reading returns the same values."""
    rows = zip(ids.tolist(), *(one.tolist() for one in columns), keyword_sets(keywords), strict=True)
    for one, *coordinates, words in rows:
        text = "\t".join(map(repr, coordinates))
        yield f"{one}\t{text}\t{','.join(f'w{word}' for word in words.tolist())}\n"


def _write(path: Path, lines: Iterable[str]) -> None:
    try:
        with path.open("w", encoding="ascii") as file:
            file.writelines(lines)
    except OSError as error:
        raise BenchError(f"{path} cannot be written: {error}") from None
