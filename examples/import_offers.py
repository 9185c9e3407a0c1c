"""Import the offers of a CSV file, and print those nearest to a place. A script: it needs no event loop.

The file has the columns key, keywords (separated by semicolons), lon, lat and text. Each offer has a
key: importing the file again publishes nothing twice, and replaces the offers that have changed.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import nearcast
import nearcast.sync
from nearcast import GeoObject, TopK


def offers(file: Path, ttl_s: float) -> list[GeoObject]:
    """Read the offers of a file."""
    with file.open(encoding="utf-8", newline="") as lines:
        return [
            GeoObject(
                row["keywords"].split(";"),
                lon=float(row["lon"]),
                lat=float(row["lat"]),
                ttl_s=ttl_s,
                payload=row["text"].encode(),
                key=row["key"],
            )
            for row in csv.DictReader(lines)
        ]


def main() -> None:
    """Import and search."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path)
    parser.add_argument("--server", default="localhost:7433", metavar="HOST:PORT")
    parser.add_argument("--ttl-s", type=float, default=3600.0, help="lifetime of an offer [3600]")
    parser.add_argument("--keywords", nargs="+", default=["sushi", "tea"], help="[sushi tea]")
    parser.add_argument("--lon", type=float, default=14.50)
    parser.add_argument("--lat", type=float, default=35.89)
    options = parser.parse_args()

    try:
        with nearcast.sync.connect(options.server, timeout_s=60) as client:
            ids = client.publisher().publish(offers(options.file, options.ttl_s))
            print(f"{len(ids)} offers imported")
            spec = TopK(set(options.keywords), k=5, distance_scale_m=5000)
            for match in client.search(spec, lon=options.lon, lat=options.lat):
                print(f"{match.distance_m:8,.0f} m  {match.object.payload.decode()}")
    except nearcast.NearcastError as error:
        sys.exit(f"{error} ({error.hint})" if error.hint else str(error))


if __name__ == "__main__":
    main()
