"""What keeps programs that were built with a release from talking to those that are built now.

What a release has stays as it is: messages, fields, oneofs, enum values, services and methods. A field or
an enum value may go if its number is reserved. Anything new may come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

_Numbers = list[range]


def breaks(before: FileDescriptorSet, now: FileDescriptorSet) -> list[str]:
    """Return what has changed that must not, a line for each."""
    return [
        *_message_breaks(_messages(before), _messages(now)),
        *_enum_breaks(_enums(before), _enums(now)),
        *_service_breaks(_services(before), _services(now)),
    ]


# -- what a set of files has, by full name -------------------------------------------------------------


def _messages(files: FileDescriptorSet) -> dict[str, DescriptorProto]:
    def nested(prefix: str, messages: Iterable[DescriptorProto]) -> Iterator[tuple[str, DescriptorProto]]:
        for message in messages:
            name = f"{prefix}.{message.name}"
            yield name, message
            yield from nested(name, message.nested_type)

    return dict(one for file in files.file for one in nested(file.package, file.message_type))


def _enums(files: FileDescriptorSet) -> dict[str, EnumDescriptorProto]:
    outer = {f"{file.package}.{enum.name}": enum for file in files.file for enum in file.enum_type}
    inner = {
        f"{name}.{enum.name}": enum
        for name, message in _messages(files).items()
        for enum in message.enum_type
    }
    return outer | inner


def _services(files: FileDescriptorSet) -> dict[str, ServiceDescriptorProto]:
    return {f"{file.package}.{one.name}": one for file in files.file for one in file.service}


# -- what is compared ----------------------------------------------------------------------------------


def _message_breaks(
    before: Mapping[str, DescriptorProto], now: Mapping[str, DescriptorProto]
) -> Iterator[str]:
    for name in before:
        if name not in now:
            yield f"message {name} is gone"
            continue
        old, new = before[name], now[name]
        fields = {field.name: field for field in new.field}
        reserved = [range(one.start, one.end) for one in new.reserved_range]
        yield from _number_breaks(name, _numbers(old.field), _numbers(new.field), reserved)
        yield from _reserved_breaks(
            name, [range(one.start, one.end) for one in old.reserved_range], reserved
        )
        for field in old.field:
            same = fields.get(field.name)
            if same is not None and same.number == field.number:
                yield from _differences(f"{name}.{field.name}", _about(field, old), _about(same, new))


def _enum_breaks(
    before: Mapping[str, EnumDescriptorProto], now: Mapping[str, EnumDescriptorProto]
) -> Iterator[str]:
    for name in before:
        if name not in now:
            yield f"enum {name} is gone"
            continue
        old, new = before[name], now[name]
        # The last number of an enum's range belongs to it; that of a message's does not.
        reserved = [range(one.start, one.end + 1) for one in new.reserved_range]
        yield from _number_breaks(name, _numbers(old.value), _numbers(new.value), reserved)
        yield from _reserved_breaks(
            name, [range(one.start, one.end + 1) for one in old.reserved_range], reserved
        )


def _service_breaks(
    before: Mapping[str, ServiceDescriptorProto], now: Mapping[str, ServiceDescriptorProto]
) -> Iterator[str]:
    for name in before:
        if name not in now:
            yield f"service {name} is gone"
            continue
        methods = {method.name: method for method in now[name].method}
        for method in before[name].method:
            same = methods.get(method.name)
            if same is None:
                yield f"method {name}.{method.name} is gone"
            else:
                yield from _differences(
                    f"{name}.{method.name}", _about_method(method), _about_method(same)
                )


# -- how -----------------------------------------------------------------------------------------------


def _numbers(
    named: Iterable[FieldDescriptorProto] | Iterable[EnumValueDescriptorProto],
) -> dict[str, int]:
    return {one.name: one.number for one in named}


def _number_breaks(
    name: str, before: Mapping[str, int], now: Mapping[str, int], reserved: _Numbers
) -> Iterator[str]:
    for word, number in before.items():
        if word not in now:
            if not any(number in numbers for numbers in reserved):
                yield f"{name}.{word} is gone, and its number {number} is not reserved"
        elif now[word] != number:
            yield f"{name}.{word} was number {number} and is {now[word]}"


def _reserved_breaks(name: str, before: _Numbers, now: _Numbers) -> Iterator[str]:
    joined = _joined(now)
    for old in _joined(before):
        if not any(new.start <= old.start and old.stop <= new.stop for new in joined):
            yield f"{name}: not all numbers from {old.start} to {old.stop - 1} are reserved any more"


def _joined(numbers: _Numbers) -> _Numbers:
    """Return the same numbers, in as few ranges as can be."""
    found: _Numbers = []
    for one in sorted(numbers, key=lambda one: one.start):
        if found and one.start == found[-1].stop:
            found[-1] = range(found[-1].start, one.stop)
        else:
            found.append(one)
    return found


def _differences(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for what, value in before.items():
        if now[what] != value:
            yield f"{name}: its {what} was {value} and is {now[what]}"


def _about(field: FieldDescriptorProto, message: DescriptorProto) -> dict[str, str]:
    """Return what decides how a field is written, and how it is read."""
    is_choice = field.HasField("oneof_index") and not field.proto3_optional
    return {
        "type": field.type_name or FieldDescriptorProto.Type.Name(field.type),
        "label": FieldDescriptorProto.Label.Name(field.label),
        "presence": "optional" if field.proto3_optional else "implicit",
        "oneof": message.oneof_decl[field.oneof_index].name if is_choice else "none",
    }


def _about_method(method: MethodDescriptorProto) -> dict[str, str]:
    return {
        "request": method.input_type,
        "response": method.output_type,
        "request side": "a stream" if method.client_streaming else "one message",
        "response side": "a stream" if method.server_streaming else "one message",
    }
