"""Entries to messages of the log and back (`proto/cluster/v1/entries.proto`). O(size)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from google.protobuf.message import DecodeError

from cluster.entries import (
    FORMAT,
    Advance,
    Caller,
    Change,
    Cursor,
    Entry,
    Founding,
    Publish,
    Retract,
    SetIdf,
    SetRules,
    SetSink,
    SinkSent,
    TakeIn,
    Tick,
    UseWindows,
    WeightsDone,
)
from cluster.log import LogError
from cluster.v1 import entries_pb2 as pb
from nearcast.canonical import NewObject, Window
from safe_region.earth.shapes import Bounds, ObjectArea, Polygon
from safe_region.scoring.idf import IdfError, IdfTable

Setting = Advance | SetIdf | SetRules | SetSink | SinkSent | UseWindows | WeightsDone


class FormatError(LogError):
    """A message is damaged, or of a format or with an entry that this version does not know."""


def encoded(entries: Iterable[Entry]) -> bytes:
    """Return a message with entries."""
    return pb.Message(format=FORMAT, entries=map(_entry_message, entries)).SerializeToString()


def encoded_parts(content: bytes, bytes_max: int) -> list[bytes]:
    """Return the messages of a batch, which have the content of a larger message together."""
    pieces = [content[i : i + bytes_max] for i in range(0, len(content), bytes_max)]
    parts = (pb.Part(number=i, count=len(pieces), content=piece) for i, piece in enumerate(pieces))
    return [pb.Message(format=FORMAT, part=part).SerializeToString() for part in parts]


class Assembler:
    """Decodes messages in their order; the parts of a batch become one message."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def decoded(self, data: bytes) -> Sequence[Entry] | None:
        """Return the entries of a message; None for a part of a batch, except the last.

        Raises
        ------
        FormatError
            If this version cannot read it.
        """
        message = _parsed(data)
        if not message.HasField("part"):
            if self._parts:
                raise FormatError("a batch of the log is not complete")
            return [_entry(one) for one in message.entries]
        part = message.part
        if part.number != len(self._parts):
            raise FormatError("a batch of the log is not complete")
        self._parts.append(part.content)
        if len(self._parts) < part.count:
            return None
        content, self._parts = b"".join(self._parts), []
        return [_entry(one) for one in _parsed(content).entries]


def _parsed(data: bytes) -> pb.Message:
    try:
        message = pb.Message.FromString(data)
    except DecodeError as error:
        raise FormatError(f"a message of the log cannot be read: {error}") from error
    if message.format != FORMAT:
        raise FormatError(
            f"a message of the log has the format {message.format}, this version reads {FORMAT}: use a "
            "newer version"
        )
    return message


def _entry_message(entry: Entry) -> pb.Entry:
    message = pb.Entry(time_ms=entry.time_ms, request_id=entry.request_id)
    match entry.change:
        case Founding() as founding:
            message.founding.rules = founding.rules
            message.founding.area.extend(founding.area)
            message.founding.projection.extend(founding.projection)
            message.founding.virtual_time = founding.virtual_time
            message.founding.quotas.update(founding.quotas)
        case Publish(caller, objects):
            message.publish.caller.CopyFrom(_caller_message(caller))
            message.publish.objects.extend(map(_object_message, objects))
        case Retract(caller, ids, keys):
            message.retract.caller.CopyFrom(_caller_message(caller))
            message.retract.ids.extend(ids)
            message.retract.keys.extend(keys)
        case TakeIn() as taken:
            message.take_in.CopyFrom(_take_in_message(taken))
        case Tick():
            message.tick.SetInParent()
        case _:
            _put_setting(message, entry.change)
    return message


def _put_setting(message: pb.Entry, change: Setting) -> None:
    match change:
        case Advance(time_ms):
            message.advance.time_ms = time_ms
        case SetIdf(table):
            message.set_idf.table = zlib.compress(table.as_json().encode())
        case SetRules(rules):
            message.set_rules.rules = rules
        case SetSink(is_on):
            message.set_sink.is_on = is_on
        case SinkSent(number):
            message.sink_sent.number = number
        case WeightsDone(generation):
            message.weights_done.generation = generation
        case UseWindows(node, windows, must):
            message.use_windows.node, message.use_windows.must = node, must
            message.use_windows.windows.extend(
                pb.Window(duration_ms=one.duration_ms, count=one.count) for one in windows
            )


def _take_in_message(taken: TakeIn) -> pb.TakeIn:
    return pb.TakeIn(
        stream=taken.stream,
        before=pb.Cursor(offset=taken.before.offset, entry_count=taken.before.entry_count),
        offset=taken.offset,
        objects=map(_object_message, taken.objects),
        gone=taken.gone,
    )


def _caller_message(caller: Caller) -> pb.Caller:
    return pb.Caller(tenant=caller.tenant, id=caller.id, roles=caller.roles)


def _object_message(item: NewObject) -> pb.Object:
    message = pb.Object(
        lon=item.lon + 0.0,  # SQLite stores -0.0 as 0
        lat=item.lat + 0.0,
        keywords=item.keywords,
        ttl_ms=item.ttl_ms,
        payload=item.payload,
        key=item.key,
    )
    match item.area:
        case Bounds(west, south, east, north):
            message.rectangle.extend((west, south, east, north))
        case Polygon(outer):
            message.polygon.extend(chain.from_iterable(outer))
    return message


def _entry(message: pb.Entry) -> Entry:
    return Entry(message.time_ms, _change(message), message.request_id)


def _change(message: pb.Entry) -> Change:
    match message.WhichOneof("change"):
        case "founding":
            founding = message.founding
            return Founding(
                founding.rules,
                tuple(founding.area),
                tuple(founding.projection),
                founding.virtual_time,
                dict(founding.quotas),
            )
        case "publish":
            publish = message.publish
            return Publish(_caller(publish.caller), tuple(map(_object, publish.objects)))
        case "retract":
            retract = message.retract
            return Retract(_caller(retract.caller), tuple(retract.ids), tuple(retract.keys))
        case "take_in":
            return _take_in(message.take_in)
        case "tick":
            return Tick()
        case _:
            return _setting(message)


def _take_in(message: pb.TakeIn) -> TakeIn:
    before = Cursor(message.before.offset, message.before.entry_count)
    objects = tuple(map(_object, message.objects))
    return TakeIn(message.stream, before, message.offset, objects, tuple(message.gone))


def _setting(message: pb.Entry) -> Setting:
    name = message.WhichOneof("change")
    if name not in _SETTINGS:
        raise FormatError("the log has an entry that this version does not know: use a newer version")
    return _SETTINGS[name](getattr(message, name))


def _use_windows(message: pb.UseWindows) -> UseWindows:
    windows = tuple(Window(one.duration_ms, one.count) for one in message.windows)
    return UseWindows(message.node, windows, message.must)


def _table(data: bytes) -> IdfTable:
    try:
        return IdfTable.from_stored(zlib.decompress(data).decode())
    except (zlib.error, UnicodeError, IdfError) as error:
        raise FormatError(f"a table of weights in the log cannot be read: {error}") from error


def _caller(message: pb.Caller) -> Caller:
    return Caller(message.tenant, message.id, tuple(message.roles))


def _object(message: pb.Object) -> NewObject:
    return NewObject(
        message.lon,
        message.lat,
        tuple(message.keywords),
        message.ttl_ms,
        message.payload,
        message.key,
        _area(message),
    )


def _area(message: pb.Object) -> ObjectArea | None:
    if message.rectangle:
        return Bounds(*message.rectangle)
    if message.polygon:
        numbers = list(message.polygon)
        return Polygon(tuple(zip(numbers[::2], numbers[1::2], strict=True)))
    return None


_SETTINGS: dict[str | None, Callable[[Any], Setting]] = {
    "advance": lambda message: Advance(message.time_ms),
    "set_idf": lambda message: SetIdf(_table(message.table)),
    "weights_done": lambda message: WeightsDone(message.generation),
    "set_rules": lambda message: SetRules(message.rules),
    "set_sink": lambda message: SetSink(message.is_on),
    "sink_sent": lambda message: SinkSent(message.number),
    "use_windows": _use_windows,
}
"""What reads the messages of settings, by their field."""
