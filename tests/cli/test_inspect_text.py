"""What `nearcast inspect` prints."""

from __future__ import annotations

import pytest

from cli.inspect_text import device_lines

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("silent_ms", "version", "text"),
    [
        (90_000, 3, "last seen 90.0 s ago"),
        (90_000, 0, "last seen in the last 90.0 s"),
        (HOUR_MS * 5, 0, "last seen 4.0 h to 5.0 h ago"),
        (0, 0, "last seen at an unknown time"),
    ],
)
def test_when_a_device_was_last_seen_is_known_to_the_hour_after_a_restart(silent_ms, version, text):
    found = {
        "device_id": "d",
        "state": "DEVICE_STATE_PARKED",
        "silent_ms": silent_ms,
        "version": version,
        "report_sequence": 1,
        "kept_count": 0,
        "waiting_count": 0,
        "subscriptions": [],
    }
    first, second, *_ = device_lines(found)
    assert "not seen since the server started" in first
    assert second == f"  {text}"
