"""Texts of a file as what is published: read, drawn as a stream, asked for on the command line."""

from collections import Counter

import pytest
from click.testing import CliRunner

from cli.app import app
from safe_region.earth.frame import EARTH_RADIUS_M, Area, Frame
from server.limits import Limits
from simulator import schemas
from simulator.maps import MapError, read_map, read_texts
from simulator.parameters import SimulationParameters
from simulator.workload.objects import OFFER_WORDS, object_count, objects_of_texts
from tests.simulator.maps.road_lists import degree_grid, grid, write

AREA = Area(14.0, 35.0, 15.0, 36.0)
ROWS = [
    '1,14.5,35.5,Da Mario,"Pizza, pasta  PIZZA"',
    "2,14.0,36.0,,bread & cake",
    '3,14.7,35.1,Kiosk,"[""tea"", ""two words""]"',
    "4,13.999,35.5,West,far away",
    "5,14.5,35.5,Silent,",
]
HEADER = "id,lon,lat,name,text"
SEED = 7


def texts_file(tmp_path, rows=ROWS, header=HEADER, name="texts.csv"):
    return write(tmp_path / name, "\n".join([header, *rows]) + "\n")


def failure(path):
    with pytest.raises(MapError) as raised:
        read_texts(path, AREA, SEED)
    return str(raised.value)


@pytest.mark.parametrize("name", ["texts.csv", "texts.csv.gz"])
def test_texts_on_the_map_with_their_keywords(tmp_path, name):
    texts = read_texts(texts_file(tmp_path, name=name), AREA, SEED)
    rows = sorted(texts.table.to_pylist(), key=lambda row: row["lon"])
    assert [(row["lon"], row["lat"], row["keywords"]) for row in rows] == [
        (14.0, 36.0, ["&", "bread", "cake"]),
        (14.5, 35.5, ["pasta", "pizza"]),
        (14.7, 35.1, ["tea", "two words"]),
    ]
    assert texts.counts() == {"taken": 3, "outside": 1, "wordless": 1}
    assert texts.table["text_id"].to_pylist() == [0, 1, 2]


def test_their_order_is_that_of_the_seed_and_not_of_the_file(tmp_path):
    path = texts_file(tmp_path, [f"{i},{14 + i / 100},35.5,,word{i}" for i in range(100)])
    first, again, other = (read_texts(path, AREA, seed).table for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    lons = first["lon"].to_pylist()
    assert sorted(lons) == sorted(other["lon"].to_pylist()) != lons


def test_keywords_are_valid_for_a_server(tmp_path):
    limits = Limits()
    long, longest = "x" * (limits.keyword_length_max + 1), "y" * limits.keyword_length_max
    many = " ".join(f"word{number:02d}" for number in range(90))
    path = texts_file(tmp_path, [f"1,14.5,35.5,A,{long} {longest} zero\u200bwidth {many}"])
    (keywords,) = read_texts(path, AREA, SEED).table["keywords"].to_pylist()
    assert len(keywords) == limits.object_keywords_max - 1, "an offer's word fits"
    assert {longest, "word00", "word61"} <= set(keywords)
    assert not {long, "zero\u200bwidth", "word62"} & set(keywords)


def test_positions_in_the_unit_of_the_network(tmp_path):
    path = grid(size=8, step=70.0, x0=1_000.0, y0=1_000.0).write_plain(tmp_path)
    texts = texts_file(tmp_path, ["1265,1245,kiosk", "9000,1245,far"], "x,y,text")
    wanted = SimulationParameters(map_file=path, texts_file=texts, unit_m=2.0)
    found = read_map(path, wanted, lambda *_: None).texts
    (row,) = found.table.to_pylist()
    # The middle of the network is at 1245, 1245.
    assert row["lon"] == pytest.approx(40.0 / (EARTH_RADIUS_M * 3.141592653589793 / 180.0))
    assert row["lat"] == 0.0
    assert found.outside == 1


HINT = " degrees; coordinates other than degrees need --unit-m"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("4,14.5", "2 fields, must be 5: id, lon, lat, name, text"),
        ("4,west,35.9,A,B", "lon is 'west', must be a number"),
        (
            "4,14.5,90.5,A,B",
            f"lat is '90.5', must be within -90..90{HINT}",
        ),
        ('4,14.5,35.9,"A,B', "not CSV: unexpected end of data"),
    ],
)
def test_a_line_that_is_wrong(tmp_path, row, message):
    path = texts_file(tmp_path, [*ROWS, row])
    assert failure(path) == f"{path}, line 7: {message}"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "id,x0,lat,name,text",
            "no column for the position of a text: must be one of lon, longitude, x;",
        ),
        ("id,lon,lat,name,words", "no column for the published text: must be one of text;"),
    ],
)
def test_a_header_that_lacks_something(tmp_path, header, message):
    path = texts_file(tmp_path, header=header)
    assert failure(path).startswith(f"{path}, line 1: {message}")


def test_a_file_of_which_nothing_remains(tmp_path):
    assert failure(tmp_path / "none.csv") == f"file {tmp_path / 'none.csv'} does not exist"
    path = texts_file(tmp_path, ["1,14.5,35.5,A,"])
    assert failure(path) == f"{path} has no texts: no row has a text with a keyword"
    path = texts_file(tmp_path, ["1,-74.25,40.5,A,a", "2,-73.5,41,B,b"])
    assert failure(path) == (
        f"{path} has no texts on the map: all 2 are outside its area, longitudes 14 to 15, latitudes "
        "35 to 36; they are within longitudes -74.25 to -73.5, latitudes 40.5 to 41"
    )


def test_the_stream_has_each_text_once_before_any_twice(spark, tmp_path):
    offers = ",".join(OFFER_WORDS)
    rows = [f"{i},14.5,35.{i},,word{i} sale" for i in range(1, 9)] + [f'9,14.5,35.9,,"all {offers}"']
    table = read_texts(texts_file(tmp_path, rows), AREA, SEED).table
    parameters = SimulationParameters(
        objects=9, arrivals_per_s=1.0, seconds=60, ttl_s_mean=100.0, replaced_share=0.5, seed=3
    )
    count = object_count(parameters)
    texts = spark.createDataFrame(table.to_pandas(), schemas.TEXTS)
    found = objects_of_texts(texts, len(rows), spark.range(count), Frame.of(AREA), parameters).collect()
    words = dict(zip(table["lat"].to_pylist(), table["keywords"].to_pylist(), strict=True))
    firsts, seconds = {}, []
    for row in sorted(found, key=lambda row: (row.object_key, row.publish_ms)):
        if row.object_key in firsts:
            seconds.append(row)
        else:
            firsts[row.object_key] = row
    assert len(firsts) == count > len(rows)
    assert all(row.keywords == words[row.lat] for row in firsts.values())
    assert {row.lat for row in firsts.values() if row.publish_ms == 0} == set(words)
    uses = Counter(row.lat for row in firsts.values())
    assert max(uses.values()) - min(uses.values()) <= 1
    late_ms = [row.publish_ms for row in firsts.values() if row.publish_ms > 0]
    assert len(set(late_ms)) > 0.9 * len(late_ms)
    assert max(late_ms) > parameters.run_ms / 2
    assert seconds
    for row in seconds:
        (offer,) = set(row.keywords) - set(words[row.lat])
        assert offer in OFFER_WORDS
        assert len(row.keywords) == len(words[row.lat]) + 1
    assert all(row.lat != 35.9 for row in seconds), "it has all offers already"


@pytest.mark.parametrize("command", ["simulate", "demo"])
@pytest.mark.parametrize("on_map", [False, True])
def test_the_command_line_reports_wrong_texts(tmp_path, command, on_map):
    path = texts_file(tmp_path, [*ROWS, "6,east,35.5,A,B"])
    flags = [f"--map={degree_grid().write_csv(tmp_path)}"] if on_map else []
    out = tmp_path / "out"
    result = CliRunner().invoke(app, [command, *flags, f"--texts={path}", f"--out={out}"])
    assert result.exit_code == 1
    (line,) = [one for one in result.output.splitlines() if one.startswith("Error: ")]
    assert line.endswith(f"{path}, line 7: lon is 'east', must be a number")
    assert not out.exists()
