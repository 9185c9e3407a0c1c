"""Each way to break the wire is found; what is new passes."""

from __future__ import annotations

import io
import subprocess
import tarfile

import pytest
from click.testing import CliRunner
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tests.protos.__main__ import main
from tests.protos.breaks import breaks
from tests.protos.sources import FOLDER, RELEASE_FILE, _extract, compiled

RELEASED = """
syntax = "proto3";
package shop;
message Cup {
  reserved 20 to 29;
  string name = 1;
  int32 size_ml = 2;
  optional int32 price = 3;
  repeated string labels = 4;
  oneof drink {
    Tea tea = 5;
    string other = 6;
  }
  oneof lid {
    bool is_tight = 7;
  }
  Kind kind = 8;
  map<string, int32> stock = 9;
  message Tea { bool has_milk = 1; }
  enum Kind { reserved 7 to 9; KIND_UNSPECIFIED = 0; MUG = 1; GLASS = 2; }
}
message Order { Cup cup = 1; }
message Bill { int32 sum = 1; }
message Note { string text = 1; }
enum Colour { COLOUR_UNSPECIFIED = 0; RED = 1; }
service Counter {
  rpc Buy(Order) returns (Bill);
  rpc Watch(Order) returns (stream Bill);
}
service Kitchen { rpc Brew(Order) returns (Bill); }
"""

BREAKS = {
    "a field is gone": (
        "string name = 1;",
        "",
        ["shop.Cup.name is gone, and its number 1 is not reserved"],
    ),
    "a field is gone, only its name reserved": (
        "string name = 1;",
        'reserved "name";',
        ["shop.Cup.name is gone, and its number 1 is not reserved"],
    ),
    "a number has another name": (
        "string name = 1;",
        "string title = 1;",
        ["shop.Cup.name is gone, and its number 1 is not reserved"],
    ),
    "a number moves": ("size_ml = 2;", "size_ml = 10;", ["shop.Cup.size_ml was number 2 and is 10"]),
    "a number moves, and is reserved": (
        "int32 size_ml = 2;",
        "reserved 2; int32 size_ml = 10;",
        ["shop.Cup.size_ml was number 2 and is 10"],
    ),
    "two numbers change places": (
        "string name = 1;\n  int32 size_ml = 2;",
        "string name = 2;\n  int32 size_ml = 1;",
        ["shop.Cup.name was number 1 and is 2", "shop.Cup.size_ml was number 2 and is 1"],
    ),
    "another type": (
        "int32 size_ml",
        "sint32 size_ml",
        ["shop.Cup.size_ml: its type was TYPE_INT32 and is TYPE_SINT32"],
    ),
    "a narrower type": (
        "int32 sum",
        "bool sum",
        ["shop.Bill.sum: its type was TYPE_INT32 and is TYPE_BOOL"],
    ),
    "another message": (
        "Tea tea",
        "Bill tea",
        ["shop.Cup.tea: its type was .shop.Cup.Tea and is .shop.Bill"],
    ),
    "another enum": (
        "Kind kind",
        "Colour kind",
        ["shop.Cup.kind: its type was .shop.Cup.Kind and is .shop.Colour"],
    ),
    "a map of something else": (
        "map<string, int32>",
        "map<string, string>",
        ["shop.Cup.StockEntry.value: its type was TYPE_INT32 and is TYPE_STRING"],
    ),
    "one becomes many": (
        "string name = 1;",
        "repeated string name = 1;",
        ["shop.Cup.name: its label was LABEL_OPTIONAL and is LABEL_REPEATED"],
    ),
    "many become one": (
        "repeated string labels",
        "string labels",
        ["shop.Cup.labels: its label was LABEL_REPEATED and is LABEL_OPTIONAL"],
    ),
    "zero cannot be told from absent any more": (
        "optional int32 price",
        "int32 price",
        ["shop.Cup.price: its presence was optional and is implicit"],
    ),
    "absent is told from zero": (
        "int32 size_ml",
        "optional int32 size_ml",
        ["shop.Cup.size_ml: its presence was implicit and is optional"],
    ),
    "an old field into a oneof": (
        "string name = 1;",
        "oneof called { string name = 1; string nick = 30; }",
        ["shop.Cup.name: its oneof was none and is called"],
    ),
    "out of a oneof": (
        "oneof lid {\n    bool is_tight = 7;\n  }",
        "bool is_tight = 7;",
        ["shop.Cup.is_tight: its oneof was lid and is none"],
    ),
    "from a oneof to another": (
        "string other = 6;\n  }\n  oneof lid {",
        "}\n  oneof lid {\n    string other = 6;",
        ["shop.Cup.other: its oneof was drink and is lid"],
    ),
    "an enum value moves": ("MUG = 1", "MUG = 3", ["shop.Cup.Kind.MUG was number 1 and is 3"]),
    "an enum value is gone": (
        "GLASS = 2;",
        "",
        ["shop.Cup.Kind.GLASS is gone, and its number 2 is not reserved"],
    ),
    "an enum value has another name": (
        "RED = 1",
        "BLUE = 1",
        ["shop.Colour.RED is gone, and its number 1 is not reserved"],
    ),
    "a reserved number is used": (
        "reserved 20 to 29;",
        "reserved 20 to 24, 26 to 29; string note = 25;",
        ["shop.Cup: not all numbers from 20 to 29 are reserved any more"],
    ),
    "the last reserved number of an enum is used": (
        "reserved 7 to 9; KIND_UNSPECIFIED = 0;",
        "reserved 7, 8; KIND_UNSPECIFIED = 0; BOWL = 9;",
        ["shop.Cup.Kind: not all numbers from 7 to 9 are reserved any more"],
    ),
    "a message is gone": ("message Note { string text = 1; }", "", ["message shop.Note is gone"]),
    "an enum is gone": (
        "enum Colour { COLOUR_UNSPECIFIED = 0; RED = 1; }",
        "",
        ["enum shop.Colour is gone"],
    ),
    "a service is gone": (
        "service Kitchen { rpc Brew(Order) returns (Bill); }",
        "",
        ["service shop.Kitchen is gone"],
    ),
    "a method is gone": ("rpc Brew(Order) returns (Bill);", "", ["method shop.Kitchen.Brew is gone"]),
    "a method has another name": ("rpc Brew(", "rpc Boil(", ["method shop.Kitchen.Brew is gone"]),
    "another request": (
        "rpc Buy(Order)",
        "rpc Buy(Cup)",
        ["shop.Counter.Buy: its request was .shop.Order and is .shop.Cup"],
    ),
    "another response": (
        "rpc Buy(Order) returns (Bill)",
        "rpc Buy(Order) returns (Cup)",
        ["shop.Counter.Buy: its response was .shop.Bill and is .shop.Cup"],
    ),
    "a stream of requests": (
        "rpc Buy(Order)",
        "rpc Buy(stream Order)",
        ["shop.Counter.Buy: its request side was one message and is a stream"],
    ),
    "no stream of responses": (
        "returns (stream Bill)",
        "returns (Bill)",
        ["shop.Counter.Watch: its response side was a stream and is one message"],
    ),
}

ADDITIONS = {
    "nothing": ("", ""),
    "a field": ("string name = 1;", "string name = 1; string maker = 30;"),
    "a field in a oneof": ("string other = 6;", "string other = 6; string none = 30;"),
    "a oneof": (
        "string name = 1;",
        "string name = 1; oneof origin { string made = 30; string found = 31; }",
    ),
    "an enum value": ("RED = 1;", "RED = 1; BLUE = 2;"),
    "a reserved number": ("string name = 1;", "string name = 1; reserved 30; "),
    "more reserved numbers": ("reserved 20 to 29;", "reserved 18 to 24, 25 to 31;"),
    "a message": ("message Order {", "message Tray { Cup cup = 1; } message Order {"),
    "a message in a message": ("message Tea {", "message Juice { bool is_cold = 1; } message Tea {"),
    "an enum": ("enum Colour {", "enum Size { SIZE_UNSPECIFIED = 0; } enum Colour {"),
    "a method": ("service Counter {", "service Counter { rpc Return(Cup) returns (Bill);"),
    "a service": (
        "service Counter {",
        "service Cellar { rpc Get(Order) returns (Cup); } service Counter {",
    ),
    "a field that went, with its number reserved": ("int32 size_ml = 2;", "reserved 2;"),
    "an enum value that went, with its number reserved": ("GLASS = 2;", "reserved 2;"),
    "comments, order": (
        "string name = 1;\n  int32 size_ml = 2;",
        "int32 size_ml = 2; // in ml\n  string name = 1;",
    ),
}


def protos(folder, text) -> FileDescriptorSet:
    folder.mkdir()
    (folder / "shop.proto").write_text(text)
    return compiled(folder)


@pytest.mark.parametrize("name", BREAKS)
def test_breaking_changes_are_found(name, tmp_path):
    old, new, expected = BREAKS[name]
    assert RELEASED.count(old) == 1
    now = protos(tmp_path / "now", RELEASED.replace(old, new))
    assert breaks(protos(tmp_path / "before", RELEASED), now) == expected


@pytest.mark.parametrize("name", ADDITIONS)
def test_additions_pass(name, tmp_path):
    old, new = ADDITIONS[name]
    assert old in RELEASED
    now = protos(tmp_path / "now", RELEASED.replace(old, new, 1))
    assert breaks(protos(tmp_path / "before", RELEASED), now) == []


def test_a_message_may_move_to_another_file(tmp_path):
    before = protos(tmp_path / "before", RELEASED)
    text = "message Note { string text = 1; }"
    (tmp_path / "now").mkdir()
    (tmp_path / "now" / "note.proto").write_text(f'syntax = "proto3";\npackage shop;\n{text}\n')
    (tmp_path / "now" / "shop.proto").write_text(RELEASED.replace(text, ""))
    assert breaks(before, compiled(tmp_path / "now")) == []


# -- against a release ---------------------------------------------------------------------------------


def git(repository, *arguments) -> None:
    names = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    command = ["git", *names, *arguments]
    subprocess.run(command, cwd=repository, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    """A repository that names its release, which had the file, and has gone on since."""
    git(tmp_path, "init")
    (tmp_path / FOLDER).mkdir()
    proto = tmp_path / FOLDER / "shop.proto"
    proto.write_text(RELEASED)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    git(tmp_path, "tag", "v1.0.0")
    (tmp_path / RELEASE_FILE).write_text("v1.0.0\n")
    proto.write_text(RELEASED.replace("bool is_tight = 7;", "bool is_closed = 7;"))
    git(tmp_path, "commit", "-am", "two")
    return tmp_path


def compare(repository, *options):
    return CliRunner().invoke(main, [f"--repository={repository}", *options])


@pytest.mark.processes
def test_the_release_that_is_named_is_compared_with(repository):
    done = compare(repository)
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "shop.Cup.is_tight is gone, and its number 7 is not reserved",
        "protos: changes since v1.0.0 that break the wire: 1",
    ]


@pytest.mark.processes
def test_any_commit_can_be_compared_with(repository):
    done = compare(repository, "--since=HEAD")
    assert (done.exit_code, done.output) == (0, "protos: changes since HEAD that break the wire: 0\n")


@pytest.mark.processes
def test_before_the_first_release_there_is_nothing_to_compare_with(repository):
    (repository / RELEASE_FILE).write_text("")
    done = compare(repository)
    assert (done.exit_code, "names no release yet" in done.output) == (0, True)


@pytest.mark.processes
def test_a_release_that_is_not_there_fails(repository):
    (repository / RELEASE_FILE).write_text("v9.9.9\n")
    assert compare(repository).exit_code != 0


@pytest.mark.processes
def test_a_commit_is_read_without_later_syntax(repository, monkeypatch):
    """3.11.0 to 3.11.3 know no filters of archives."""

    def extractall(_files, _path=".", _members=None, *, numeric_owner=False) -> None:  # noqa: ARG001
        raise AssertionError("it extracts whatever is there, without a filter")

    monkeypatch.setattr(tarfile.TarFile, "extractall", extractall)
    assert compare(repository).exit_code == 1


def test_an_archive_writes_nothing_outside_of_its_folder(tmp_path):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as files:
        link = tarfile.TarInfo("proto")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        files.addfile(link)
        member = tarfile.TarInfo("../outside.proto")
        member.size = 1
        files.addfile(member, io.BytesIO(b"x"))
    (tmp_path / "inside").mkdir()
    with pytest.raises(ValueError, match="outside of the archive's folder"):
        _extract(archive.getvalue(), tmp_path / "inside")
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert not list((tmp_path / "inside").iterdir())
