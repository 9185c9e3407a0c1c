"""`python -m tests.fuzz`: a million inputs, followed by what of our code they reach; a process a target.

Inputs that are a finding are written to `runs/fuzz/TARGET`. `python -m tests.fuzz --target TARGET
--again FILE` takes one again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import atheris
import click

from tests.fuzz.budgets import BUDGETS
from tests.fuzz.commands import COMMANDS
from tests.fuzz.costs import COSTS
from tests.fuzz.devices import DEVICES
from tests.fuzz.feeds import FILES, HEADS, NAMES, REDIS, SCRAPES
from tests.fuzz.gateways import FRAMES, HTTP
from tests.fuzz.queues import QUEUE, TURNS
from tests.fuzz.rows import ENTRIES, STORED
from tests.fuzz.target import PREFIX, Target
from tests.fuzz.texts import ADDRESSES, EXPRESSIONS, IDF, KEYS, RELOADS, SETTINGS, TOKENS
from tests.fuzz.walks import WALKS

TARGETS = {
    one.name: one
    for one in (
        COMMANDS,
        COSTS,
        DEVICES,
        EXPRESSIONS,
        SETTINGS,
        IDF,
        KEYS,
        TOKENS,
        ADDRESSES,
        ENTRIES,
        STORED,
        FILES,
        NAMES,
        REDIS,
        SCRAPES,
        HEADS,
        RELOADS,
        WALKS,
        TURNS,
        QUEUE,
        BUDGETS,
        FRAMES,
        HTTP,
    )
}
TIMEOUT_S = 20
"""An input that takes longer is a finding."""
MEMORY_MB = 3_000
LENGTH_MAX = 8_192


@click.command()
@click.option("--inputs", default=1_450_000, show_default=True, help="In all.")
@click.option("--target", "names", multiple=True, type=click.Choice(list(TARGETS)), help="Only these.")
@click.option("--seed", default=1, show_default=True, help="Decides which inputs are tried.")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("runs/fuzz"), show_default=True)
@click.option(
    "--again", type=click.Path(exists=True, path_type=Path), help="Take this input, of one target."
)
@click.option("--within", hidden=True, is_flag=True, help="Run a target in this process.")
def main(
    inputs: int, names: tuple[str, ...], seed: int, folder: Path, again: Path | None, *, within: bool
) -> None:
    """Feed what takes bytes from others with what nobody has thought of; fail if anything breaks."""
    chosen = [TARGETS[name] for name in names or TARGETS]
    if within:
        _fuzz(chosen[0], inputs, seed, folder / chosen[0].name)
    if again is not None:
        chosen[0].make()(again.read_bytes())
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which deletes temporary files
    total = sum(one.inputs for one in TARGETS.values())
    failed = []
    for target in chosen:
        count = round(inputs * target.inputs / total)
        begin_s = time.monotonic()
        arguments = ["--within", "--target", target.name, "--inputs", str(count), "--seed", str(seed)]
        command = [sys.executable, "-m", "tests.fuzz", *arguments, "--folder", str(folder)]
        done = _run(command)
        seconds = time.monotonic() - begin_s
        is_fine = done.returncode == 0 and f"Done {count} runs" in done.stderr
        click.echo(f"{target.name:12} {count:9,} inputs {seconds:7.1f} s  {'' if is_fine else 'FINDING'}")
        if not is_fine:
            failed.append(target.name)
            click.echo(done.stdout[-3000:] + done.stderr[-3000:], err=True)
    click.echo(f"{len(failed)} findings of {inputs:,} inputs" if not names else "")
    sys.exit(bool(failed))


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a target. Its temporary files are deleted here: the fuzzer exits without the exit handlers."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as scratch:
        variables = {**os.environ, "TMPDIR": scratch}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


def _fuzz(target: Target, inputs: int, seed: int, folder: Path) -> None:
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(target.seeds()):
        (corpus / f"seed-{number:03}").write_bytes(one)
    for name, module in list(sys.modules.items()):
        if name.startswith(target.instrumented):
            _instrument(module)
    run = target.make()
    options = [
        f"-runs={inputs}",
        f"-seed={seed}",
        f"-timeout={TIMEOUT_S}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-max_len={LENGTH_MAX}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        str(corpus),
    ]
    atheris.Setup([sys.argv[0], *options], run)
    atheris.Fuzz()


def _instrument(module: object) -> None:
    """Follow the functions of a module, those of its classes included."""
    for name, found in list(vars(module).items()):
        if getattr(found, "__module__", None) != module.__name__:
            continue
        if isinstance(found, type):
            for key, member in list(vars(found).items()):
                if callable(member) and hasattr(member, "__code__"):
                    setattr(found, key, atheris.instrument_func(member))
        elif hasattr(found, "__code__"):
            setattr(module, name, atheris.instrument_func(found))


if __name__ == "__main__":
    main()
