"""What an executor says of its host."""

from dataclasses import replace

import pytest

from feeds.hosts.probe import Probe
from feeds.hosts.program import library_versions, source_digest


@pytest.fixture
def probe(tmp_path):
    mark = tmp_path / "shared" / ".mark"
    mark.parent.mkdir()
    mark.write_text("text")
    return Probe(
        versions=library_versions(),
        program=source_digest(),
        memory=str(tmp_path),
        memory_bytes=1,
        folders=(str(tmp_path),),
        marks={mark.as_uri(): "text"},
        pause_s=0.0,
    )


def errors(probe):
    (report,) = probe([])
    assert report.host
    return report.errors


def test_nothing_is_wrong_with_a_host_like_this_one(probe):
    assert errors(probe) == []


def test_problems_of_a_host_are_named(probe, tmp_path):
    versions = {**library_versions(), "numpy": "0.1", "no-such-package": "1.0"}
    found = errors(replace(probe, versions=versions))
    assert len(found) == 2
    assert any("numpy is version" in line and "must be 0.1, as at the driver" in line for line in found)
    assert "the package no-such-package is missing, must be version 1.0" in found
    assert errors(replace(probe, program="another")) == [
        "the version of nearcast differs from that at the driver"
    ]
    (line,) = errors(replace(probe, memory_bytes=1 << 60))
    assert "MiB free, must have" in line
    (line,) = errors(replace(probe, memory=str(tmp_path / "nowhere")))
    assert "nowhere: No such file or directory" in line
    assert errors(replace(probe, folders=("/nowhere",))) == ["/nowhere does not exist"]
    (uri,) = probe.marks
    for marks in ({uri: "another text"}, {f"{uri}2": "text"}):
        (line,) = errors(replace(probe, marks=marks))
        assert line.endswith("/shared is not the driver's folder, or cannot be read")


def test_a_host_without_the_program_is_an_error(probe, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "feeds.hosts.program", None)
    (line,) = errors(probe)
    assert line.startswith("nearcast cannot be imported (")
