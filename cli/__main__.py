"""`python -m cli`: the command line without an installed script."""

from cli import main

main()
