"""`nearcast indexes`, and what processes load of published structures: nothing that was not chosen."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from click.testing import CliRunner

import nearcast
from cli.compile import compile_
from cli.indexes import indexes
from index.catalogue import KINDS
from nearcast import Boolean, Circle, GeoObject, IdfTable, Similarity, TopK
from tests.cli.test_serve import AREA, ROOT

_NOTED = """
    import atexit, json, runpy, sys
    from pathlib import Path

    out = Path(sys.argv.pop(1))
    atexit.register(lambda: out.write_text(json.dumps(sorted(sys.modules))))
"""
_COMMAND = """
    runpy.run_module("cli", run_name="__main__", alter_sys=True)
"""
_STREAM_JOB = """
    import streaming.service
    from safe_region.earth.frame import Area
    from streaming.distribution import distribution_of
    from streaming.window_size import WindowSize
    from streaming.plan import Plan
    from streaming.warmup import ready_kernels

    plan = Plan.begin(
        distribution_of("hashing", 2, None),
        area=Area(12.5, 55.6, 12.65, 55.75),
        window=WindowSize(10, 0),
        mechanism="hashing",
        partitions=2,
        keys=(0, 1),
        subscription_index=sys.argv[1],
    )
    ready_kernels(plan, lambda _done, _total: None)
"""


def program(*parts) -> list[str]:
    return [sys.executable, "-c", "".join(map(textwrap.dedent, parts))]


def loaded_by(tmp_path, body, *arguments) -> set[str]:
    """Modules that a program has loaded when it ends."""
    out = tmp_path / "modules.json"
    done = subprocess.run(
        [*program(_NOTED, body), str(out), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(out.read_text()))


def published(modules) -> set[str]:
    """Folders of `index.published` among modules; of the folder above, its own name."""
    parts = [name.split(".") for name in modules]
    return {".".join(one[1:3]) for one in parts if one[:2] == ["index", "published"]}


class Server:
    """`nearcast serve`, which writes down at its end what it has loaded."""

    def __init__(self, tmp_path, *arguments) -> None:
        self._out = tmp_path / "modules.json"
        self._process = subprocess.Popen(
            [*program(_NOTED, _COMMAND), str(self._out), "serve", AREA, "--port=0", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "NEARCAST_STORE": ":memory:"},
        )
        line = self._process.stdout.readline()
        assert line.startswith("serving on ")
        self.target = line.removeprefix("serving on ").strip()

    async def work(self) -> None:
        """Let it do something with each kind of index."""
        async with nearcast.connect(self.target) as client:
            await client.publisher().publish([GeoObject({"tea"}, 14.5, 35.5, 60.0)])
            await client.set_idf(IdfTable({"tea": 2.0}))
            device = await client.attach("walker", lon=14.5, lat=35.5)
            best = TopK({"tea"}, k=1)
            weighted = TopK({"tea"}, k=1, similarity=Similarity.TFIDF)
            within = Boolean("tea", Circle(100.0), moving=True)
            for spec in (best, weighted, within):
                assert len((await device.subscribe(spec)).results()) == 1
            await device.move(14.6, 35.5)
            await client.sync()

    def loaded(self) -> set[str]:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=600)
        assert self._process.returncode == 0
        return set(json.loads(self._out.read_text()))


@pytest.mark.processes
def test_a_server_loads_no_published_structure(tmp_path):
    server = Server(tmp_path)
    asyncio.run(server.work())
    loaded = server.loaded()
    assert "index.sq_plus_tree.index" in loaded
    assert published(loaded) == set()


@pytest.mark.processes
def test_a_server_loads_those_that_were_chosen(tmp_path):
    server = Server(tmp_path, "--object-index=iqf", "--clause-index=rq-tree")
    asyncio.run(server.work())
    assert published(server.loaded()) == {
        "published",
        "published.clause_cells",
        "published.inverted_quad",
        "published.iqf",
    }


@pytest.mark.processes
@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["serve", "--help"], ["stream", "run", "--help"], ["indexes"], ["indexes", "--json"]],
    ids=" ".join,
)
def test_the_command_line_loads_no_index_to_speak_of_them(tmp_path, arguments):
    loaded = loaded_by(tmp_path, _COMMAND, *arguments)
    assert "index.catalogue" in loaded
    assert not {"index.naive", "numba", "numpy"} & loaded
    assert published(loaded) == set()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], set()),
        (
            ["--object-index=all"],
            {"published", "published.iqf", "published.iq_tree", "published.ir_tree"},
        ),
    ],
)
def test_compiling_loads_those_that_were_chosen(tmp_path, arguments, expected):
    assert published(loaded_by(tmp_path, _COMMAND, "compile", *arguments)) == expected


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sq-plus-tree", set()),
        pytest.param("igpt", {"published", "published.igpt"}, marks=pytest.mark.slow),
    ],
)
def test_the_stream_job_loads_those_that_were_chosen(tmp_path, name, expected):
    loaded = loaded_by(tmp_path, _STREAM_JOB, name)
    assert "streaming.tasks.processor" in loaded
    assert published(loaded) == expected


@pytest.mark.processes
def test_the_sdk_loads_no_index(tmp_path):
    loaded = loaded_by(tmp_path, "import nearcast; nearcast.connect")
    assert "nearcast.client" in loaded
    assert not [name for name in loaded if name.split(".")[0] == "index"]


def test_the_list_has_every_index_under_its_setting_with_the_default_marked():
    done = CliRunner().invoke(indexes)
    assert done.exit_code == 0
    parts = done.output.strip().split("\n\n")
    assert len(parts) == len(KINDS)
    for part, kind in zip(parts, KINDS.values(), strict=True):
        head, *lines = part.splitlines()
        assert head == f"{kind.name} ({kind.flag}): {kind.what}"
        assert [line[2:].split()[0] for line in lines] == list(kind.names)
        assert [line[2:].split()[0] for line in lines if line.startswith("* ")] == [kind.default]
        for line in lines:
            entry = kind.indexes.get(line[2:].split()[0])
            assert line.endswith(entry.what if entry else kind.without)
            assert (entry.source if entry else "") in line


def test_the_list_as_json():
    done = CliRunner().invoke(indexes, ["--json"])
    found = json.loads(done.output)
    assert list(found) == [kind.name for kind in KINDS.values()]
    objects = found["objects"]
    assert (objects["setting"], objects["flag"], objects["default"]) == (
        "object_index",
        "--object-index",
        "iqf-plus",
    )
    by_name = {one["name"]: one for one in objects["indexes"]}
    assert set(by_name) == set(KINDS["object_index"].names)
    assert by_name["iqf"]["paper"] == "Lamps, section 5"
    assert by_name["iqf-plus"]["paper"] is None
    assert by_name["iqf"]["what"] == KINDS["object_index"].indexes["iqf"].what


def test_compiling_refuses_a_name_that_is_none():
    done = CliRunner().invoke(compile_, ["--clause-index=ap-treee"])
    assert done.exit_code == 2
    assert done.output == (
        "Error: --clause-index is 'ap-treee', must be all or one that `nearcast indexes` lists for "
        "boolean subscriptions; did you mean 'ap-tree'?\n"
    )
