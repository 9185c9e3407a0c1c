"""The messages of a host: applied once a batch, read by all partitions, rebuilt from any log."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.arrays.blocks import Messages, Subscriptions
from streaming.partition.options import engine_options
from streaming.result.audit import Definition
from streaming.tasks import shared_window as module
from streaming.tasks.file_lock import FileLock, LockedError
from streaming.tasks.log import Head
from streaming.tasks.shared_window import MessageBatch, SharedWindow, WindowAheadError
from streaming.window_size import WindowSize
from tests.streaming.feed import FRAME, RandomFeed
from tests.streaming.test_partition import SQUARE, WEIGHTS, read, require_same
from tests.streaming.test_replicas import WINDOWS, Cluster, follow
from tests.support.amounts import named, seeds

SIZE = WindowSize(count=60)
PARTS = ["0", "1", "2", "messages", "words"]


class KeptLog:
    """A log of messages only."""

    def __init__(self) -> None:
        self.blocks: list[Messages] = []

    def messages(self) -> list[Messages]:
        """Return the blocks."""
        return self.blocks

    def subscriptions(self) -> list[Subscriptions]:
        """Return nothing."""
        return []


@pytest.fixture
def batches() -> Iterator[MessageBatch]:
    """Yield batches of messages, without end."""
    feed = RandomFeed(5)

    def drawn() -> Iterator[MessageBatch]:
        for number in range(1_000):
            _, messages = read([], feed.messages(20))
            yield MessageBatch(messages, number.to_bytes(16))

    return drawn()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Return a folder as jobs have it: those beside it belong to other versions, which are removed."""
    folder = tmp_path / "run" / "version"
    folder.mkdir(mode=0o700, parents=True)
    return folder


def _window(folder: Path) -> SharedWindow:
    return SharedWindow(folder, engine_options(SQUARE, FRAME.maxdist_m), SIZE)


def _apply(
    folder: Path, head: Head, batch: MessageBatch, log: KeptLog, found: list[tuple[str, list[int], bool]]
) -> None:
    """Do what a task does; record the messages, the new ones, and whether it has applied the batch."""
    with _window(folder).opened() as window:
        before = window.before(head, batch, log)  # type: ignore[arg-type]
        assert before is None or before.window.next_number == head.next_number
        messages = window.after(head, batch, log)  # type: ignore[arg-type]
        assert messages.step is not None
        found.append((messages.token, messages.step.came.tolist(), window.applied_bytes > 0))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("mechanism", ["hashing", "prefix"])
@pytest.mark.parametrize("part", seeds(3), ids=named)
def test_results_are_those_of_the_definition_whatever_is_lost(
    part: range, mechanism: str, window: str, tmp_path: Path
) -> None:
    """The order of tasks is that of partitions: those after the first find the batch applied."""
    feed = RandomFeed(part.start, WEIGHTS, booleans=mechanism == "hashing")
    size = WINDOWS[window]
    cluster = Cluster(tmp_path, mechanism, size, 3)
    definition = Definition(FRAME, size, lambda word: WEIGHTS.get(word, 1.0))
    lists: dict[int, dict[int, float]] = {}
    for _ in range(16):
        lost = [name for name in PARTS if feed.chance.random() < 0.15]
        for name in lost:
            cluster.forget(name)
        subscriptions, messages = feed.subscriptions(8), feed.messages(feed.chance.choice((0, 5, 40)))
        rows = cluster.apply(*read(subscriptions, messages))
        follow(lists, rows)
        definition.apply(subscriptions, messages)
        require_same(lists, definition.results(definition.subscriptions))


def test_a_host_has_one_window_for_all_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = []
    apply = module.LiveMessages.apply
    monkeypatch.setattr(
        module.LiveMessages, "apply", lambda *given: (applied.append(1), apply(*given))[1]
    )
    feed = RandomFeed(4)
    cluster = Cluster(tmp_path, "hashing", SIZE, 3)
    for number in range(4):
        cluster.apply(*read(feed.subscriptions(8), feed.messages(20)))
        assert len(applied) == number + 1
        assert cluster.counts["window_bytes"] > 0
        assert cluster.counts["rebuilt"] == 0
    # A partition that is lost is rebuilt over messages of its own, unless it is the first one.
    cluster.forget("0")
    cluster.apply(*read(feed.subscriptions(8), feed.messages(20)))
    assert (len(applied), cluster.counts["rebuilt"]) == (5, 1)
    cluster.forget("1")
    cluster.apply(*read(feed.subscriptions(8), feed.messages(20)))
    assert (len(applied), cluster.counts["rebuilt"]) == (7, 1)
    cluster.apply(*read(feed.subscriptions(8), feed.messages(20)))
    assert (len(applied), cluster.counts["rebuilt"]) == (8, 0)
    # All partitions refer to the messages, so all of them are rebuilt.
    cluster.forget("messages")
    cluster.apply(*read(feed.subscriptions(8), feed.messages(20)))
    assert cluster.counts["rebuilt"] == 3


def test_a_batch_is_applied_once_and_another_one_in_its_place_is_applied_anew(
    job: Path, batches: Iterator[MessageBatch]
) -> None:
    log, head = KeptLog(), Head()
    first, second, other = next(batches), next(batches), next(batches)
    with _window(job).opened() as window:
        messages = window.after(head, first, log)  # type: ignore[arg-type]
        token, ids = messages.token, messages.objects.table.rows["id"][messages.objects.table.used()]
        assert window.applied_bytes > 0
        assert messages.step is not None
        log.blocks.append(messages.step.log)
        head = Head(1, messages.now_ms, messages.window.next_number, message_batches=1)
    with _window(job).opened() as window:
        again = window.before(head, second, log)  # type: ignore[arg-type]
        assert again is not None
        assert again.token == token
        assert again.objects.table.rows["id"][again.objects.table.used()].tolist() == ids.tolist()
        assert window.applied_bytes == 0
        after = window.after(head, second, log)  # type: ignore[arg-type]
        assert after.token == token
        assert window.before(head, second, log) is None  # type: ignore[arg-type]
    with _window(job).opened() as window:
        assert window.after(head, second, log).token == token  # type: ignore[arg-type]
        assert window.applied_bytes == 0
    # Another batch in the place of the second, as after a fault: from the log, so with other slots.
    with _window(job).opened() as window:
        replaced = window.after(head, other, log)  # type: ignore[arg-type]
        assert replaced.token != token
        expected = window.private(head, log)  # type: ignore[arg-type]
        (words,) = window.words_of(other.messages)
        expected.apply(other.messages, words)
        for one in (replaced, expected):
            one.forget_gone()
            one.check()
        alive = [
            sorted(one.objects.table.rows["id"][one.objects.table.used()]) for one in (replaced, expected)
        ]
        assert alive[0] == alive[1]


def test_a_task_behind_the_messages_fails_and_says_what_to_do(
    job: Path, batches: Iterator[MessageBatch]
) -> None:
    log, late = KeptLog(), next(batches)
    head = Head()
    for number in range(2):
        with _window(job).opened() as window:
            messages = window.after(head, next(batches), log)  # type: ignore[arg-type]
            assert messages.step is not None
            log.blocks.append(messages.step.log)
            now_ms, next_number = messages.now_ms, messages.window.next_number
            head = Head(number + 1, now_ms, next_number, message_batches=number + 1)
    with (
        _window(job).opened() as window,
        pytest.raises(WindowAheadError, match=rf"those of batch 2, must be .* 1: .* remove {job}"),
    ):
        window.after(Head(), late, log)  # type: ignore[arg-type]
    shutil.rmtree(job / "messages")
    with _window(job).opened() as window:
        assert window.after(Head(), late, KeptLog()).step is not None  # type: ignore[arg-type]


def test_messages_do_not_change_while_another_task_reads_them(
    job: Path, batches: Iterator[MessageBatch]
) -> None:
    log, head = KeptLog(), Head()
    first, second = next(batches), next(batches)
    done = threading.Event()

    def go_on() -> None:
        with _window(job).opened() as window:
            window.after(head, second, log)  # type: ignore[arg-type]
        done.set()

    with _window(job).opened() as window:
        messages = window.after(head, first, log)  # type: ignore[arg-type]
        assert messages.step is not None
        log.blocks.append(messages.step.log)
        head = Head(1, messages.now_ms, messages.window.next_number, message_batches=1)
        other = threading.Thread(target=go_on)
        other.start()
        assert not done.wait(0.2)
        assert messages.step.came.tolist() == messages.objects.table.used().tolist()
    other.join(60)
    assert done.is_set()


def test_of_tasks_that_come_together_one_applies_the_batch(
    job: Path, batches: Iterator[MessageBatch]
) -> None:
    log, head = KeptLog(), Head()
    for number in range(6):
        batch = next(batches)
        found: list[tuple[str, list[int], bool]] = []
        given = (job, head, batch, log, found)
        tasks = [threading.Thread(target=_apply, args=given) for _ in range(4)]
        for one in tasks:
            one.start()
        for one in tasks:
            one.join(60)
        assert len(found) == 4
        assert len({(token, tuple(came)) for token, came, _ in found}) == 1
        assert sum(has_applied for *_, has_applied in found) == 1
        with _window(job).opened() as window:
            messages = window.after(head, batch, log)  # type: ignore[arg-type]
            assert messages.step is not None
            log.blocks.append(messages.step.log)
            now_ms, next_number = messages.now_ms, messages.window.next_number
            head = Head(number + 1, now_ms, next_number, message_batches=number + 1)


@pytest.mark.parametrize("lost", ["messages", "words"])
def test_messages_that_cannot_be_read_are_built_from_the_log(
    lost: str, job: Path, batches: Iterator[MessageBatch]
) -> None:
    log, head, first = KeptLog(), Head(), next(batches)
    with _window(job).opened() as window:
        messages = window.after(head, first, log)  # type: ignore[arg-type]
        assert messages.step is not None
        log.blocks.append(messages.step.log)
        head = Head(1, messages.now_ms, messages.window.next_number, message_batches=1)
        token = messages.token
    path = job / lost / "head"
    line, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(line + b"\n" + b"?" * len(rest))
    with _window(job).opened() as window:
        messages = window.after(head, next(batches), log)  # type: ignore[arg-type]
        assert messages.token != token
        messages.forget_gone()
        messages.check()


def test_a_lock_that_others_hold_is_named(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock", 0.0) as one, FileLock(tmp_path / "lock", 0.0) as two:
        one.share()
        two.share()
        with pytest.raises(LockedError, match=f"{tmp_path} is in use"):
            one.own()
    with FileLock(tmp_path / "lock", 0.0) as one, FileLock(tmp_path / "lock", 0.0) as two:
        one.own()
        assert one.is_exclusive
        with pytest.raises(LockedError):
            two.share()
        one.share()
        two.share()
