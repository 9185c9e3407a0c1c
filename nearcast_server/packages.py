"""The folder of the packages behind this one: `server`, `index`, `simulator` and so on.

Their names are too general for the top of site-packages, so an installation has them in a private folder,
which is on no path until this package is imported. In a checkout they are beside this package, and are
imported as it is.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_PRIVATE = _HERE / "_packages"

FOLDER = _PRIVATE if _PRIVATE.is_dir() else _HERE.parent


def import_last() -> None:
    """Make the packages importable, after all others: modules of an app keep their names."""
    if FOLDER == _PRIVATE and str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))


def import_first() -> None:
    """Make the packages importable, before all others, in this process and in those that it starts."""
    os.environ["PYTHONPATH"] = os.pathsep.join(_first(os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    sys.path[:] = _first(sys.path)


def _first(path: list[str]) -> list[str]:
    return [str(FOLDER), *(entry for entry in path if entry and entry != str(FOLDER))]
