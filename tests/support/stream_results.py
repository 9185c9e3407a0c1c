"""What a stream job has written on a local file system, read without Spark."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from feeds.schemas import WITHOUT_PAYLOADS
from streaming.arrays.changes import ROWS
from streaming.plan import Plan
from streaming.result.manifest import BATCHES, CHANGES, REFUSED, batch_name, folder_of

_CHANGES = pa.schema([("partition", pa.int32()), *ROWS])


def plan_of(checkpoint: Path) -> Plan:
    """The plan of a job."""
    path = checkpoint / "plan.json"
    return Plan.from_json(path.read_bytes(), path)


def manifest_path(out: Path, number: int) -> Path:
    return out / BATCHES / f"{batch_name(number)}.json"


def manifest(out: Path, number: int) -> dict:
    """What is noted of a batch that is complete."""
    return json.loads(manifest_path(out, number).read_text())


def complete(out: Path) -> list[int]:
    """The numbers of batches that are complete, in order."""
    return sorted(int(path.stem) for path in (out / BATCHES).glob("[0-9]*.json"))


def read_files(out: Path, feed: str) -> list[str]:
    """The files of a feed that complete batches have read, in their order."""
    return [path for number in complete(out) for path in manifest(out, number)["files"][feed]]


def read_feed(path: Path, feed: str) -> list[dict]:
    """The rows of a Parquet file of a feed, without payloads."""
    return pq.read_table(path.absolute(), schema=WITHOUT_PAYLOADS[feed]).to_pylist()


def forget_manifest(out: Path, number: int) -> None:
    """Let a batch not be complete."""
    path = manifest_path(out, number)
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def changes_of(out: Path, number: int) -> list[dict]:
    """The changes of a batch that is complete."""
    folder = out / CHANGES / folder_of(number, manifest(out, number)["driver"])
    return (
        pq.read_table(folder, schema=_CHANGES, partitioning=None).to_pylist() if folder.exists() else []
    )


def refused_of(out: Path, number: int) -> list[str]:
    """The lines of a batch that were refused."""
    folder = out / REFUSED / folder_of(number, manifest(out, number)["driver"])
    return [line for path in folder.glob("*.txt") for line in path.read_text().splitlines()]


def follow(lists: dict[int, dict[int, float]], rows: list[dict]) -> tuple[int, list[str]]:
    """Apply the changes of a batch to results; return how many there were, and those that cannot be.

    Parameters
    ----------
    lists
        Scores by object, by subscription; is changed.
    rows
        What a batch has written (`changes_of`).
    """
    wrong: list[str] = []
    count = 0
    for row in rows:
        for one in row["left"]:
            count += 1
            if lists.setdefault(one, {}).pop(row["object_id"], None) is None:
                wrong.append(f"{row['object_id']} leaves {one}, and was not there")
    entered: set[tuple[int, int]] = set()
    for row in rows:
        for one, score in zip(row["entered"], row["scores"], strict=True):
            count += 1
            held = lists.setdefault(one, {})
            if held.get(row["object_id"]) == score:
                wrong.append(f"{row['object_id']} enters {one}, and is there")
            if (row["object_id"], one) in entered:
                wrong.append(f"{row['object_id']} enters {one} twice")
            entered.add((row["object_id"], one))
            held[row["object_id"]] = score
    return count, wrong
