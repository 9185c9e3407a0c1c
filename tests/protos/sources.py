"""What the protos say, of a folder and of a commit."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = "proto"

RELEASE_FILE = "proto/RELEASED"
"""Names the commit of the last release. Each release writes it; it is empty before the first."""


def released(repository: Path = ROOT) -> str | None:
    """Return the commit of the last release; None before the first."""
    return (repository / RELEASE_FILE).read_text(encoding="utf-8").strip() or None


def compiled(folder: Path) -> FileDescriptorSet:
    """Compile the protos of a folder.

    Raises
    ------
    ValueError
        If they cannot be compiled.
    """
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as made:
        out = Path(made) / "descriptors"
        status = protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={out}", *names])
        if status:
            raise ValueError(f"protoc ended with status {status}")
        return FileDescriptorSet.FromString(out.read_bytes())


def compiled_at(commit: str, repository: Path = ROOT) -> FileDescriptorSet:
    """Compile the protos that a commit has."""
    command = ["git", "archive", "--format=tar", commit, FOLDER]
    archive = subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        _extract(archive, Path(folder))
        return compiled(Path(folder) / FOLDER)


def _extract(archive: bytes, folder: Path) -> None:
    """Write the regular files of an archive, which lie within the folder.

    By hand: `extractall(filter=...)`, the safe way, came with Python 3.11.4.
    """
    root = folder.resolve()
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            content = files.extractfile(member) if member.isreg() else None
            if content is None:
                continue
            path = (root / member.name).resolve()
            if not path.is_relative_to(root):
                raise ValueError(f"{member.name} lies outside of the archive's folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
