"""`python -m tests.protos`: do programs of the last release still understand this one, and it them?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tests.protos.breaks import breaks
from tests.protos.sources import FOLDER, RELEASE_FILE, ROOT, compiled, compiled_at, released


@click.command()
@click.option("--since", help=f"A commit or tag to compare with.  [default: what {RELEASE_FILE} names]")
@click.option("--repository", type=click.Path(path_type=Path), default=ROOT, help="Whose protos.")
def main(since: str | None, repository: Path) -> None:
    """Compare the protos with those of the last release; fail if a change breaks what is in use."""
    before = since or released(repository)
    if before is None:
        click.echo(f"protos: {RELEASE_FILE} names no release yet, so there is nothing to compare with")
        return
    found = breaks(compiled_at(before, repository), compiled(repository / FOLDER))
    for line in found:
        click.echo(line)
    click.echo(f"protos: changes since {before} that break the wire: {len(found)}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
