from nearcast.cli.progress import bars


def test_a_total_may_be_unknown_at_first(capsys):
    with bars() as report:
        report("map", 0, 0)
        report("map", 20_000, 0)
        report("map", 23_456, 23_456)
        report("city", 1, 1)
    shown = capsys.readouterr().err
    assert "23456/23456" in shown
    assert "1/1" in shown
