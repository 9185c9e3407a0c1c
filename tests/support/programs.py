"""Programs of the documentation, run against a server of the test."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


async def printed(program: str, address: str, port: int, folder: Path, *arguments: str) -> str:
    """Run a program that names an address, with the server's port in place of it; return its output."""
    assert address in program
    file = folder / "program.py"
    file.write_text(program.replace(address, f"127.0.0.1:{port}"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(file), *arguments, stdout=asyncio.subprocess.PIPE, cwd=_ROOT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()
