from cli import progress
from cli.progress import bars


def test_a_total_may_be_unknown_at_first(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with bars() as report:
        report("map", 0, 0)
        report("map", 20_000, 0)
        report("map", 23_456, 23_456)
        report("city", 1, 1)
        report("town", 1, 1)
        report("town", 1, 3)
    shown = capsys.readouterr().err
    assert "23456/23456" in shown
    assert "1/1" in shown
    assert "1/3" in shown


def test_a_log_has_a_line_when_a_stage_is_done_and_now_and_then(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with bars() as report:
        report("read", 1, 0)
        report("steps", 1, 2_000)
        now[0] = 40.0
        report("steps", 1_000, 2_000)
        report("steps", 1_001, 2_000)
        now[0] = 80.0
        report("read", 700, 0)
        report("steps", 2_000, 2_000)
        report("steps", 2_000, 2_000)
        report("runs", 1, 12)
        now[0] = 120.0
        report("runs", 2, 12)  # fewer than one a second
        now[0] = 200.0
        report("steps", 2_000, 2_000)  # a further round of one report
        report("steps", 1, 2_000)  # and a third
        now[0] = 240.0
        report("steps", 400, 2_000)
    assert capsys.readouterr().err == (
        "steps: 1,000 of 2,000, 25/s, 40 s left\nread: 700\nsteps: 2,000 of 2,000, 25/s in 80 s\n"
        "runs: 2 of 12, 200 s left\nsteps: 2,000 of 2,000\nsteps: 400 of 2,000, 10/s, 160 s left\n"
    )
