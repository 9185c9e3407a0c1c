"""Places from a file of their own, on maps of any kind."""

import pytest

from safe_region.earth.frame import EARTH_RADIUS_M
from simulator.maps import MapError, read_map
from simulator.parameters import SimulationParameters
from tests.simulator.maps.osm_xml import town
from tests.simulator.maps.road_lists import LAT, LON, STEP_DEG, degree_grid, grid, write

ROWS = [
    f"1,{LON},{LAT},Da Mario,Da Mario restaurant pizza",
    f"2,{LON + STEP_DEG},{LAT + STEP_DEG},,bakery bread",
    f"3,{LON + 2 * STEP_DEG},{LAT},Il Forno,\"pizza; takeaway, 'l'isola\"",
]


def places_file(tmp_path, rows=ROWS, header="id,lon,lat,name,text", name="pois.csv"):
    return write(tmp_path / name, "\n".join([header, *rows]) + "\n")


def read(path, places, **parameters):
    wanted = SimulationParameters(map_file=path, places_file=places, **parameters)
    return read_map(path, wanted, lambda *_: None)


def failure(path, places, **parameters):
    with pytest.raises(MapError) as raised:
        read(path, places, **parameters)
    return str(raised.value)


@pytest.mark.parametrize("name", ["pois.csv", "pois.csv.gz"])
def test_places_of_a_road_network(tmp_path, name):
    terrain = read(degree_grid().write_csv(tmp_path), places_file(tmp_path, name=name))
    rows = {row["name"]: row for row in terrain.places.to_pylist()}
    assert set(rows) == {"Da Mario", "Il Forno", ""}
    assert rows["Da Mario"]["keywords"] == ["mario", "pizza", "restaurant"]
    assert rows["Il Forno"]["keywords"] == ["forno", "isola", "pizza", "takeaway"]
    assert rows["Da Mario"]["category"] == "place"
    assert (rows[""]["lon"], rows[""]["lat"]) == (LON + STEP_DEG, LAT + STEP_DEG)
    # The most popular first: those with names.
    assert terrain.places["place_id"].to_pylist() == [0, 1, 2]
    assert not terrain.places["name"].to_pylist()[2]


def test_places_in_the_unit_of_the_network(tmp_path):
    path = grid(x0=1_000.0, y0=1_000.0).write_plain(tmp_path)
    places = places_file(tmp_path, ["1300,1200,kiosk,shop"], "x,y,keywords,category")
    (row,) = read(path, places, unit_m=2.0).places.to_pylist()
    # The middle of the network is at 1200, 1200.
    assert row["lon"] == pytest.approx(200.0 / (EARTH_RADIUS_M * 3.141592653589793 / 180.0))
    assert row["lat"] == 0.0
    assert row["category"] == "shop"
    assert row["keywords"] == ["kiosk", "shop"]
    assert row["name"] == ""


def test_places_take_the_place_of_a_map_s_own(tmp_path):
    path = town().write(tmp_path / "town.osm")
    terrain = read(path, places_file(tmp_path))
    assert set(terrain.places["name"].to_pylist()) == {"Da Mario", "Il Forno", ""}
    assert terrain.places["keywords"].to_pylist()[2] == ["bakery", "bread"]


def test_places_without_keywords_or_far_away_are_omitted(tmp_path):
    rows = [
        *ROWS,
        f"4,{LON},{LAT},24,24/7",
        f"5,{LON},{LAT},,",
        "6,0.0,-90.0,South Pole,station",
        f"7,{LON},{LAT + 4 * STEP_DEG + 0.0044},Near,near kiosk",
        f"8,{LON},{LAT + 4 * STEP_DEG + 0.0046},Far,far kiosk",
    ]
    terrain = read(degree_grid().write_csv(tmp_path), places_file(tmp_path, rows))
    assert set(terrain.places["name"].to_pylist()) == {"Da Mario", "Il Forno", "", "Near"}
    assert terrain.area.lat_min > 35.0


def test_of_too_many_keywords_those_of_the_kind_remain(tmp_path):
    many = " ".join(f"word{number:02d}x" for number in range(90))
    places = places_file(tmp_path, [f"{LON},{LAT},shop,{many}"], "lon,lat,category,text")
    (keywords,) = read(degree_grid().write_csv(tmp_path), places).places["keywords"].to_pylist()
    assert len(keywords) == 63
    assert "shop" in keywords
    assert "word61x" in keywords
    assert "word62x" not in keywords


HINT = " degrees; coordinates other than degrees need --unit-m"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("4,14.5", "2 fields, must be 5: id, lon, lat, name, text"),
        ("4,west,35.9,A,B", "lon is 'west', must be a number"),
        ("4,14.5,90.5,A,B", f"lat is '90.5', must be within -90..90{HINT}"),
        ('4,14.5,35.9,"A,B', "not CSV: unexpected end of data"),
    ],
)
def test_a_line_that_is_wrong(tmp_path, row, message):
    places = places_file(tmp_path, [*ROWS, row])
    assert failure(degree_grid().write_csv(tmp_path), places) == f"{places}, line 5: {message}"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "id,x0,lat,name,text",
            "no column for the position of a place: must be one of lon, longitude, x;",
        ),
        (
            "id,lon,north,name,text",
            "no column for the position of a place: must be one of lat, latitude,",
        ),
        (
            "id,lon,lat,title,words",
            "no column for the description of a place: must be one of name, keywords, text;",
        ),
    ],
)
def test_a_header_that_lacks_something(tmp_path, header, message):
    places = places_file(tmp_path, header=header)
    found = failure(degree_grid().write_csv(tmp_path), places)
    assert found.startswith(f"{places}, line 1: {message}")


def test_a_file_that_has_none(tmp_path):
    path = degree_grid().write_csv(tmp_path)
    places = tmp_path / "none.csv"
    assert failure(path, places) == f"file {places} does not exist"
    places = places_file(tmp_path, ["1,14.5,35.9,7,8"])
    assert failure(path, places) == f"{places} has no places: no row has a text with a keyword"
    places = places_file(tmp_path, ["1,0.0,0.0,Null Island,buoy"])
    assert failure(path, places).startswith(f"{places} has no places near the roads of {path}: all 1 are")
