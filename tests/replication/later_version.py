"""The command line of a version that knows later rules of applying the log; their number comes first."""

from __future__ import annotations

import sys

from cluster import entries

if __name__ == "__main__":
    entries.RULES = int(sys.argv.pop(1))  # before any other module reads it
    from cli import main

    main()
