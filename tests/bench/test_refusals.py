"""What `nearcast bench run` refuses, in a line."""

from __future__ import annotations

import pytest

REFUSED = [
    ("", "no experiment is given: give names, or --all"),
    ("nowhere", "experiment is 'nowhere', must be one of lamps/..."),
    ("lamps/table-9", "experiment is 'lamps/table-9', must be one of lamps/table-3, "),
    ("lamps/table-3 --set=size=3", "--set is 'size=3', must be PARAMETER=VALUE with one of alpha"),
    ("lamps/table-3 --set=k_max", "--set is 'k_max', must be PARAMETER=VALUE"),
    ("lamps/table-3 --variant=best", "variant is 'best', must be one of naive, lamps-without-asr"),
    ("lamps/table-3 --set=data=places", "text/places_simplegeo_us.csv.gz"),
    ("lamps/table-3 --set=data=osm", "set NEARCAST_DATA"),
    ("lamps/table-3 --set=trajectories=gps", "set NEARCAST_DATA"),
    ("lamps/table-3 --set=ticks=1", "ticks is 1, must be within 2..600"),
    ("ap-plus/figure-18", "experiment is 'ap-plus/figure-18', must be one of ap-plus/figure-19, "),
    ("ap-plus/figure-21 --variant=best", "variant is 'best', must be one of ap-plus-tree, "),
    ("ap-plus/figure-21 --set=roads=oldenburg", "roads/OL.cnode"),
    ("ap-tree/figure-9", "experiment is 'ap-tree/figure-9', must be one of ap-tree/figure-10a, "),
    ("ap-tree/figure-12 --variant=b-tree", "variant is 'b-tree'"),
    ("berlinmod/q5", "experiment is 'berlinmod/q5', must be one of berlinmod/q3, "),
    ("berlinmod/q3 --set=events=500000", "events is 500000, must be at most 432,000 of 5 vehicles"),
    (
        "berlinmod/q3 --set=vehicles=1000 --set=ranges=1000000",
        "ranges is 1000000, must be at most 400,000",
    ),
    ("match/fixed-objects --variant=best", "must be one of sq-tree, sq-plus-tree, naive, dict"),
    ("match/fixed-objects --set=data=places", "text/places_simplegeo_us.csv.gz"),
    ("match/fixed-objects --set=subscriptions=0", "subscriptions is 0, must be within 1..10000000"),
    ("neighbours/devices --set=acts=mischief", "act is 'mischief', must be one of nothing, report-ids, "),
    ("publish/batches --variant=fast", "variant is 'fast', must be one of store, server"),
    ("publish/batches --set=folder=/nowhere", "folder is '/nowhere': path does not point to a directory"),
    ("ranges/radius --variant=x", "variant is 'x', must be one of set-constant"),
    (
        "retrieve/published --variant=best",
        "must be one of naive, iqf, iqf-plus, iq-tree",
    ),
    (
        "retrieve/published --set=data=osm",
        "text/pois_malta.csv.gz",
    ),
    ("retrieve/published --set=extras=-1", "must be one or several, each within 0..1000"),
    ("rt-tree/figure-7 --variant=r-tree", "variant is 'r-tree'"),
    ("server/load --set=devices=900000", "devices is 900000, must be at most"),
    ("server/load --set=devices=1", "devices is 1, must be within 4..1000000"),
    ("server/load --set=devices=10 --set=data=osm", "set NEARCAST_DATA"),
    (
        "server/load --set=boolean_share=0.5 --set=devices=9",
        "variant is 'fleet', must be one of",
    ),
    ("silence/lifetimes --variant=best", "must be one of asr, lsr, set-constant, anchored-0"),
    ("silence/lifetimes --variant=anchored-cost-ahead-count", "must be one of asr, lsr"),
    ("silence/lifetimes --set=trajectories=gps", "set NEARCAST_DATA"),
    ("silence/lifetimes --set=seconds=1", "seconds is 1, must be within 2..3600"),
    ("silence/lifetimes --set=arrivals_per_s=-1", "arrivals_per_s is -1, must be within 0.0..100000.0"),
    (
        "silence/lifetimes --set=window_s=60 --set=arrivals_per_s=1",
        "arrivals_per_s and expiries_per_s must be 0",
    ),
    (
        "silence/windows --variant=anchored-cost-ahead-count --set=window_s=0 --set=seconds=2",
        "variant is 'anchored-cost-ahead-count', which needs window_s above 0",
    ),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_what_is_wrong_is_said_in_a_line(refused, arguments, said):
    assert said in refused("run", *arguments.split())
