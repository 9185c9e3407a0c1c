"""The files of feedback of each batch: the driver passes them to the source in a local file.

Spark requests the latest offset of a source in a separate process on the driver's host. A file counts
once the manifest of its batch names it. The driver writes this notice from manifests, so the source reads
no storage except the files that a task reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from streaming.own_folder import write_own

NONE = -1
"""The number that stands for no batch."""


class Notice:
    """The files of feedback, by batch.

    Parameters
    ----------
    path
        Path of the notice, on the driver's local disk.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, files: Mapping[int, Sequence[str]]) -> None:
        """Replace the notice: URIs of files, by the number of the batch that wrote them."""
        write_own(self._path, json.dumps({str(batch): list(own) for batch, own in files.items()}))

    def read(self) -> dict[int, list[str]]:
        """Return the files by batch."""
        return {int(batch): own for batch, own in json.loads(self._path.read_text()).items()}

    def last(self) -> int:
        """Return the last batch that has written feedback, or `NONE`."""
        return max((batch for batch, own in self.read().items() if own), default=NONE)
