"""Which files have the feedback of which batch: what the driver tells the source, in a file beside it.

Spark asks a source for its latest offset in a process of its own on the driver's host. A file counts
once the manifest of its batch names it; the driver writes this notice from manifests, so the source
looks at no storage but for what a task reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from streaming.own_folder import write_own

NONE = -1
"""The number of no batch."""


class Notice:
    """The files of feedback, by batch.

    Parameters
    ----------
    path
        The notice's, on the driver's own disk.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, files: Mapping[int, Sequence[str]]) -> None:
        """Replace what is noted: URIs of files, by the number of the batch that wrote them."""
        write_own(self._path, json.dumps({str(batch): list(own) for batch, own in files.items()}))

    def read(self) -> dict[int, list[str]]:
        """Return what is noted."""
        return {int(batch): own for batch, own in json.loads(self._path.read_text()).items()}

    def last(self) -> int:
        """Return the last batch that has written feedback, or `NONE`."""
        return max((batch for batch, own in self.read().items() if own), default=NONE)
