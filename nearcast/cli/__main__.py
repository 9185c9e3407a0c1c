"""`python -m nearcast.cli`: the command line without an installed script."""

from nearcast.cli import main

main()
