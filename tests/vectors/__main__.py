"""Write the vectors with the Python SDK: `make vectors`."""

from __future__ import annotations

from tests.vectors.notation import lines
from tests.vectors.subjects import FOLDER, SUBJECTS, document

for name in SUBJECTS:
    (FOLDER / f"{name}.json").write_text("\n".join(lines(document(name))) + "\n")
