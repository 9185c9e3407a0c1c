"""`nearcast idf`: tables of keyword weights."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.failures import reported
from cli.progress import Report, bars
from cli.target_options import AskingCommand, Target, access_options, server_option
from safe_region.extras import how_to_install

if TYPE_CHECKING:
    from nearcast import IdfTable

_LOOK_S = 0.2
"""Seconds between two requests for the state of a table."""
_LINES = 20_000
"""Lines between two updates of the progress bar."""


@click.group()
def idf() -> None:
    """Build tables of keyword weights (tf-idf), and load them into a server."""


@idf.command(epilog="Example: nearcast idf build objects.tsv -o weights.json")
@click.argument("documents", type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File to write."
)
def build(documents: Path, out: Path) -> None:
    """Count the DOCUMENTS that have each keyword, and write the weights.

    DOCUMENTS is a text file with a line for each document: its keywords, separated by blanks or commas,
    in the last column if there are tabs; or a JSON list of keywords. Or it is a folder of
    `nearcast simulate`: then the documents are its objects.

    A keyword in d of n documents has the weight 1 + ln((1 + n) / (1 + d)).
    """
    from safe_region.scoring.idf import IdfError, IdfTable  # noqa: PLC0415

    with reported(IdfError, OSError), bars() as progress:
        table = IdfTable.of_documents(_keywords(documents, progress))
        out.write_text(table.as_json(), encoding="utf-8")
    click.echo(f"{out}: {len(table.weights)} keywords, weight of other keywords {table.unknown:.3f}")


@idf.command(cls=AskingCommand, epilog="Example: nearcast idf load weights.json --server localhost")
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@server_option
@access_options
def load(table: Path, **options: Any) -> None:  # noqa: ANN401
    """Load TABLE into the server, and wait until it is in force."""
    from nearcast import IdfError, IdfTable, NearcastError  # noqa: PLC0415

    with reported(NearcastError, IdfError, OSError):
        generation = asyncio.run(_load(IdfTable.read(table), Target(**options)))
    click.echo(f"{table} is in force, as generation {generation}")


async def _load(table: IdfTable, target: Target) -> int:
    async with target.connect() as client:  # fails early if the server does not respond
        await client.status()
    async with target.connect(limit_s=None) as client:
        generation = await client.set_idf(table)
        while (await client.status()).gauges["idf_coming_into_force"]:  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(_LOOK_S)
        return generation


def _keywords(documents: Path, progress: Report) -> Iterator[list[str]]:
    """Yield the keywords of each document."""
    from safe_region.scoring.keywords import is_text, keywords_of  # noqa: PLC0415

    if documents.is_dir():
        yield from _published(documents)
        return
    size, read = documents.stat().st_size, 0
    with documents.open("rb") as lines:
        for number, line in enumerate(lines):
            keywords = keywords_of(_decoded(line, f"{documents}, line {number + 1}").rpartition("\t")[2])
            for word in keywords:
                if not is_text(word):
                    raise click.ClickException(
                        f"{documents}, line {number + 1}: {word!r} has a lone surrogate, must be text"
                    )
            yield keywords
            read += len(line)
            if number % _LINES == 0:
                progress("documents", read, size)
    progress("documents", size, size)


def _decoded(line: bytes, place: str) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise click.ClickException(
            f"{place} is not UTF-8 text: byte {error.start + 1} is 0x{byte:02x}"
        ) from None


def _published(folder: Path) -> Iterator[list[str]]:
    """Yield the keywords of the objects of a simulation."""
    table = folder / "objects"
    if not table.is_dir():
        raise click.ClickException(f"{folder} is not a simulation: it has no table {table}")
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(
            f"a folder needs {error.name}: {how_to_install('simulator')}"
        ) from None
    try:
        yield from parquet.read_table(table, columns=["keywords"])["keywords"].to_pylist()
    except (ArrowException, KeyError, OSError) as error:
        raise click.ClickException(f"{table} cannot be read: {error}") from None
