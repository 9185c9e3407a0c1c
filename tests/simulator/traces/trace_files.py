"""Files of traces, written by the tests themselves."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import UTC, datetime

LON, LAT = 14.5, 35.9
STEP_DEG = 0.001
"""About 90 m from west to east and 111 m from south to north."""

BEGIN_S = 1_700_000_000


def walk(count, *, begin_s=0, step_s=10, x=0.0, y=0.0, dx=1.0, dy=0.0):
    """Points (seconds, lon, lat) on a straight line, in steps of the grid."""
    return [
        (BEGIN_S + begin_s + i * step_s, LON + (x + i * dx) * STEP_DEG, LAT + (y + i * dy) * STEP_DEG)
        for i in range(count)
    ]


def iso(seconds):
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def write(path, content):
    """Write a text or bytes, compressed if the name says so; return the path."""
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_csv(path, rows, header="vehicle,time,lon,lat"):
    """Write rows of a CSV file; without a header fields stand between blanks."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="," if header else " ", lineterminator="\n")
    if header:
        writer.writerow(header.split(","))
    writer.writerows(rows)
    return write(path, text.getvalue())


def write_gpx(path, tracks, version="1.1"):
    """Write tracks, each a list of segments of points; a time may be a text."""
    parts = []
    for segments in tracks:
        parts.append("<trk><name>x</name>")
        for points in segments:
            parts.append("<trkseg>")
            for time, lon, lat in points:
                shown = time if isinstance(time, str) else iso(time)
                parts.append(f'<trkpt lat="{lat}" lon="{lon}"><ele>3</ele><time>{shown}</time></trkpt>')
            parts.append("</trkseg>")
        parts.append("</trk>")
    space = f"http://www.topografix.com/GPX/{version.replace('.', '/')}"
    body = "".join(parts)
    return write(path, f'<?xml version="1.0"?><gpx version="{version}" xmlns="{space}">{body}</gpx>')
