"""Format the output of `nearcast inspect` for people."""

from __future__ import annotations

from typing import Any

from cli.spec_text import (
    anchor_line,
    bound_line,
    keyword_text,
    kind_text,
    length_text,
    place_text,
    spec_lines,
)

_WHY = {
    "VERDICT_HELD": "the device holds it, or will when all messages have arrived",
    "VERDICT_UNKNOWN_OBJECT": "no object has had this id yet",
    "VERDICT_GONE": "it has expired, was retracted or was replaced",
    "VERDICT_PARKED": "the subscription is not evaluated: its device is disconnected",
    "VERDICT_NO_COMMON_KEYWORD": "it shares no keyword with the subscription",
    "VERDICT_NO_CLAUSE": "it does not match the expression",
    "VERDICT_OUT_OF_WINDOW": "it is not in the window of the subscription",
    "VERDICT_PENDING": "the server waits for the position of the device",
    "VERDICT_BEYOND_REACH": "it cannot be among the k best while the device stays within its region",
    "VERDICT_DOMINATED": "it is dominated: k objects that the device holds are better at every "
    "position, and live as long",
    "VERDICT_NOT_AMONG_K": "it is not among the k best where the subscription was evaluated",
    "VERDICT_OUT_OF_RANGE": "it is not within the range grown by the slack",
    "VERDICT_TOO_MANY": "there are more matches than the server sends, and others are nearer",
}
_STATES = {
    "IN_SYNC": "attached and up to date",
    "CATCHING_UP": "attached but too slow: a snapshot waits to be sent",
    "DETACHED": "disconnected: the server keeps its deltas",
    "PARKED": "disconnected for too long, silent, or not seen since the server started: its "
    "subscriptions are not evaluated until it attaches again",
}
_HELD_SHOWN = 20
_WORDS_WIDTH = 24
_KEY_WIDTH = 16
_RECORDED_S = 3_600.0
_UNITS_S = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"))


def device_lines(found: dict[str, Any]) -> list[str]:
    """Return lines about a device and its subscriptions."""
    state = found["state"].removeprefix("DEVICE_STATE_")
    count = len(found["subscriptions"])
    what = _STATES.get(state, "a state unknown to this program")
    lines = [
        f"device {found['device_id']}: {state}, {what}",
        f"  {_seen_text(found, state)}",
    ]
    if found["version"]:
        lines.append(
            f"  last delta {found['version']}, last report {found['report_sequence']}; deltas not "
            f"acknowledged {found['kept_count']}, waiting to be sent {found['waiting_count']}"
        )
    lines.append(f"  {count} subscription{'s' * (count != 1)}")
    for one in found["subscriptions"]:
        lines += [f"  {line}" for line in subscription_lines(one)]
    return lines


def _seen_text(found: dict[str, Any], state: str) -> str:
    silent_s = found["silent_ms"] / 1000
    if state in {"IN_SYNC", "CATCHING_UP"}:
        lease_s = found["lease_ms"] / 1000
        parked = f"parked after {span_text(lease_s)} of silence" if lease_s else "without a lease"
        return f"last message {span_text(silent_s)} ago; {parked}"
    if not silent_s:
        return "last seen at an unknown time"
    if found["version"]:
        return f"last seen {span_text(silent_s)} ago"
    # The store has the time to the hour.
    if silent_s < _RECORDED_S:
        return f"last seen in the last {span_text(silent_s)}"
    return f"last seen {span_text(silent_s - _RECORDED_S)} to {span_text(silent_s)} ago"


def span_text(seconds: float) -> str:
    """Format a span of time in the most readable unit."""
    for size_s, unit in _UNITS_S:
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.1f} {unit}"
    return f"{seconds:.1f} s"


def subscription_lines(found: dict[str, Any]) -> list[str]:
    """Return lines about a subscription: its spec, its anchor, and the objects that its device holds."""
    state = "evaluated" if found["awake"] else "parked: not evaluated until its device attaches again"
    name = f" {found['name']!r}" if found["name"] else ""
    lines = [f"subscription {found['subscription_id']}{name}: {kind_text(found['spec'])}, {state}"]
    lines += [f"  {line}" for line in spec_lines(found["spec"])]
    if found["pending"]:
        lines.append("  an object waits for the position of the device")
    if "anchor_position" in found:
        lines.append(f"  {anchor_line(found)}")
    bound = bound_line(found)
    if bound is not None:
        lines.append(f"  {bound}")
    lines += _held_lines(found["held"], is_scored="top_k" in found["spec"])
    if "judgement" in found:
        lines += _judgement_lines(found["judgement"])
    return lines


def _held_lines(held: list[dict[str, Any]], *, is_scored: bool) -> list[str]:
    """Return a table of objects, as narrow as the keys and keywords allow."""
    if not held:
        return []
    head = ["rank", "object", "key", "keywords", "lon", "lat", "distance m", "length m"]
    rows = [head if is_scored else head[:-1]]
    for one in held[:_HELD_SHOWN]:
        words = " ".join(map(keyword_text, one["keywords"]))
        row = [
            str(one["rank"] or "-"),
            str(one["object_id"]),
            _shortened(one["key"], _KEY_WIDTH) or "-",
            _shortened(words, _WORDS_WIDTH),
            f"{one['position']['lon']:.6f}",
            f"{one['position']['lat']:.6f}",
            f"{one['length_m'] - one['r_m']:,.1f}",
        ]
        rows.append([*row, f"{one['length_m']:,.1f}"] if is_scored else row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    is_left = [name in {"key", "keywords"} for name in rows[0]]
    lines = [f"  holds {len(held)} object{'s' * (len(held) != 1)}, as seen from the anchor:"]
    for row in rows:
        cells = zip(row, widths, is_left, strict=True)
        shown = "  ".join(text.ljust(width) if left else text.rjust(width) for text, width, left in cells)
        lines.append(f"    {shown}".rstrip())
    if len(held) > _HELD_SHOWN:
        lines.append(f"    and {len(held) - _HELD_SHOWN} more: --json shows all")
    if is_scored:
        lines.append(
            "    length: the distance plus the text distance in metres; the shortest are the best"
        )
    return lines


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _judgement_lines(judgement: dict[str, Any]) -> list[str]:
    verdict = judgement["verdict"]
    why = _WHY.get(verdict, "a verdict unknown to this program")
    head = f"object {judgement['object_id']}: {verdict.removeprefix('VERDICT_')}, {why}"
    if not judgement["length_m"]:
        return [head]
    text = ""
    if judgement["r_m"]:
        text = f", and {length_text(judgement['r_m'])} for its text distance"
    rank = f"; rank {judgement['rank']}" if judgement["rank"] else ""
    return [
        head,
        f"  {length_text(judgement['length_m'] - judgement['r_m'])} from the anchor{text}{rank}",
    ]


def object_lines(found: dict[str, Any]) -> list[str]:
    """Return lines about an object and the subscriptions that hold it."""
    item = found["object"]
    key = f", key {item['key']!r}" if item["key"] else ""
    published = span_text((found["time_ms"] - item["created_ms"]) / 1000)
    expires = span_text((item["expiry_ms"] - found["time_ms"]) / 1000)
    count = found["holder_count"]
    lines = [
        f"object {item['id']}{key}: {' '.join(map(keyword_text, item['keywords']))}",
        f"  at {place_text(item['position'])}" + ", with an area" * ("area" in item),
        f"  published {published} ago, expires in {expires}; payload {found['payload_bytes']:,} bytes",
        f"  held for {count} subscription{'s' * (count != 1)}" + ":" * bool(found["holders"]),
    ]
    lines += [f"    device {one['device_id']}, {one['subscription_id']}" for one in found["holders"]]
    if count > len(found["holders"]):
        lines.append(f"    and {count - len(found['holders'])} more")
    return lines
