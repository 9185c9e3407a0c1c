"""`python -m tests.protos`: do programs of the last release still understand this one, and it them?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tests.protos.breaks import breaks
from tests.protos.sources import FOLDER, ROOT, compiled, compiled_at, last_release


@click.command()
@click.option("--since", help="A commit or tag to compare with.  [default: the last release]")
@click.option("--repository", type=click.Path(path_type=Path), default=ROOT, help="Whose protos.")
def main(since: str | None, repository: Path) -> None:
    """Compare the protos with those of the last release; fail if a change breaks what is in use."""
    before = since or last_release(repository)
    if before is None:
        click.echo(
            "protos: no tag of a release (v...) is known here, so there is nothing to compare with"
        )
        return
    found = breaks(compiled_at(before, repository), compiled(repository / FOLDER))
    for line in found:
        click.echo(line)
    click.echo(f"protos: changes since {before} that break the wire: {len(found)}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
