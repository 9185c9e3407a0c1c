"""Writes the reference of the protocol from the comments of proto/nearcast/v1."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = ".nearcast.v1."
_HEAD = """\
# Reference of the protocol

All services, messages and fields of the package `nearcast.v1`. `make reference` writes this page from the
comments of `proto/nearcast/v1`; a test compares the two. [The protocol](../protocol.md) explains
the rules, with examples.
"""
_MESSAGE, _FIELD, _NESTED, _ENUM = 4, 2, 3, 5
"""Numbers of the fields in descriptors, which make the paths of comments."""
_SERVICE, _METHOD, _VALUE, _NESTED_ENUM = 6, 2, 2, 4
_SCALARS = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}

Path_ = tuple[int, ...]


def files() -> list[FileDescriptorProto]:
    """Compile the protos of the wire with their comments; return them in the order of their names."""
    folder = _ROOT / "proto"
    names = sorted(str(path.relative_to(folder)) for path in (folder / "nearcast").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as made:
        out = Path(made) / "descriptors"
        options = ["--include_source_info", f"--descriptor_set_out={out}"]
        if protoc.main(["protoc", f"-I{folder}", *options, *names]):
            raise ValueError("protoc cannot compile the protos")
        return list(FileDescriptorSet.FromString(out.read_bytes()).file)


def page() -> str:
    """Return the page: services first, then the messages and enums of each file."""
    found = [_File(file) for file in files()]
    services = [line for file in found for line in file.services()]
    parts = [line for file in found for line in file.messages_and_enums()]
    return "\n".join([_HEAD, "## Services", "", *services, *parts]).rstrip() + "\n"


class _File:
    """One file, with its comments by path.

    Parameters
    ----------
    file
        The file, with source information.
    """

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._comments = {
            tuple(place.path): place.leading_comments for place in file.source_code_info.location
        }

    def services(self) -> Iterator[str]:
        for number, service in enumerate(self._file.service):
            yield from self._service(service, (_SERVICE, number))

    def messages_and_enums(self) -> Iterator[str]:
        name = self._file.name.rsplit("/", 1)[-1]
        yield from (f"## {name}", "")
        for number, message in enumerate(self._file.message_type):
            yield from self._message(message, message.name, (_MESSAGE, number))
        for number, enum in enumerate(self._file.enum_type):
            yield from self._enum(enum, enum.name, (_ENUM, number))

    def _service(self, service: ServiceDescriptorProto, path: Path_) -> Iterator[str]:
        yield from (f"### {service.name}", "", self._text(path), "")
        for number, method in enumerate(service.method):
            request = f"{'stream of ' * method.client_streaming}{_link(method.input_type)}"
            response = f"{'stream of ' * method.server_streaming}{_link(method.output_type)}"
            yield from (f"**{method.name}**: {request} → {response}", "")
            yield from (self._text((*path, _METHOD, number)), "")

    def _message(self, message: DescriptorProto, name: str, path: Path_) -> Iterator[str]:
        yield from (f"### {name}", "")
        if text := self._text(path):
            yield from (text, "")
        if message.field:
            yield from ("| field | type | meaning |", "|---|---|---|")
            for number, field in enumerate(message.field):
                text = self._cell((*path, _FIELD, number))
                yield f"| `{field.name}` = {field.number} | {_type(field, message)} | {text} |"
            yield ""
        for number, nested in enumerate(message.nested_type):
            if not nested.options.map_entry:
                yield from self._message(nested, f"{name}.{nested.name}", (*path, _NESTED, number))
        for number, enum in enumerate(message.enum_type):
            yield from self._enum(enum, f"{name}.{enum.name}", (*path, _NESTED_ENUM, number))

    def _enum(self, enum: EnumDescriptorProto, name: str, path: Path_) -> Iterator[str]:
        yield from (f"### {name}", "")
        if text := self._text(path):
            yield from (text, "")
        yield from ("| value | meaning |", "|---|---|")
        for number, value in enumerate(enum.value):
            yield f"| `{value.name}` = {value.number} | {self._cell((*path, _VALUE, number))} |"
        yield ""

    def _text(self, path: Path_) -> str:
        """Return a comment as Markdown; its indented lines are formulas."""
        paragraphs = self._comments.get(path, "").strip("\n").split("\n\n")
        return "\n\n".join(_escaped(re.sub(r"\n ?", "\n", part).strip()) for part in paragraphs).strip()

    def _cell(self, path: Path_) -> str:
        return " ".join(self._text(path).split()).replace("|", "\\|")


def _escaped(text: str) -> str:
    return re.sub(r"(?<!`)([*<])", r"\\\1", text)


def _link(name: str) -> str:
    """Return a link to a message or an enum of this package."""
    if not name.startswith(_PACKAGE):
        return f"`{name.removeprefix('.')}`"
    short = name.removeprefix(_PACKAGE)
    return f"[{short}](#{short.lower().replace('.', '')})"


def _type(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    entry = next((one for one in message.nested_type if field.type_name.endswith(f".{one.name}")), None)
    if entry is not None and entry.options.map_entry:
        key, value = entry.field
        return f"map of {_type(key, entry)} to {_type(value, entry)}"
    text = _link(field.type_name) if field.type_name else _SCALARS[field.type]
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {text}"
    if field.proto3_optional:
        return f"optional {text}"
    if field.HasField("oneof_index"):
        return f"{text}, one of `{message.oneof_decl[field.oneof_index].name}`"
    return text
