"""Run the command line without an installed script: `python -m cli`."""

from cli import main

main()
