"""One partition: a share of the subscriptions, and the window of messages, over an engine.

A partition applies one batch at a time and returns the changes of results between batches. Its state
follows from its input, so it can be rebuilt from the blocks of live messages and subscriptions.

Within a batch, subscriptions end and start first. Then messages arrive and retracted messages are
removed, whether the message arrived before its retraction or arrives later. The time is that of the
latest message. The set of messages that count follows from all messages, regardless of how they are
split into batches (`window`, `early`).

Objects have their own ids in the engine: ties go to the smaller id.

Operations: those of the engine, plus O(1) a message and a subscription.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from engine import Engine, EngineOptions, Positions
from engine.boolean.matcher import BooleanMatcher
from engine.contracts import BOOLEAN, STATIONARY, handle_of
from engine.stationary.matcher import StationaryMatcher, StationarySpecs
from engine.windows import Lasts
from index.batches import InterestBatch, Ints, KeywordIds, ObjectBatch
from streaming.arrays.blocks import EARLY, Messages, Subscriptions
from streaming.arrays.numbers import Numbers
from streaming.partition.applied import Applied, Counts, Done, Found
from streaming.partition.booleans import boolean_specs
from streaming.partition.candidates import Candidates
from streaming.partition.early import EarlyRetractions
from streaming.partition.news import Emit, News, nobody
from streaming.partition.window import Arrived, Window
from streaming.window_size import WindowSize

_MESSAGES_MAX = 1_000
"""Messages published at once: enough to share the work, few enough that their changes stay in caches."""
_EVALUATED_MAX = 20_000
"""Subscriptions evaluated at once."""

_NOTHING = np.empty(0, dtype=np.int64)


class Partition:
    """Exact results of a share of the subscriptions, batch by batch.

    Parameters
    ----------
    options
        The options of the engine.
    window
        Which messages count.
    candidates
        The candidates of the engine's subscription index, if replicas match the messages; else None.
    """

    def __init__(
        self, options: EngineOptions, window: WindowSize, candidates: Candidates | None = None
    ) -> None:
        self.candidates = candidates
        self.engine = Engine(options, {STATIONARY: StationaryMatcher, BOOLEAN: BooleanMatcher})
        self.numbers = Numbers()
        self.window = Window(window)
        self.early = EarlyRetractions(window)
        self.now_ms = 0
        """The time of the partition; in a count-based window the engine's clock counts ranks."""
        self.matcher: StationaryMatcher = self.engine.matchers[STATIONARY]  # type: ignore[assignment]
        self.booleans: BooleanMatcher = self.engine.matchers[BOOLEAN]  # type: ignore[assignment]

    @property
    def subscription_count(self) -> int:
        """The number of subscriptions."""
        return len(self.matcher) + len(self.booleans)

    def restore(
        self, now_ms: int, next_number: int, messages: list[Messages], subscriptions: list[Subscriptions]
    ) -> None:
        """Restore the state of a partition from its log; must be called before any other method.

        Parameters
        ----------
        now_ms, next_number
            The time of the partition, and the number of messages that had taken a place.
        messages
            The messages that took a place, batch by batch, each batch followed by its retractions.
            Batches of which no message is in the window may be absent.
        subscriptions
            The subscriptions that started and ended, batch by batch, in order.
        """
        self.now_ms = now_ms
        if messages:
            self._restore_messages(Messages.join(messages))
        self.window.next_number = next_number
        if not self.window.size.count:
            self.engine.advance(now_ms)
        if subscriptions:
            joined = Subscriptions.join(subscriptions)
            order = np.arange(len(joined))
            last = _last_of_each(joined.subscription_id, order)
            self._begin(joined, last[joined.is_end[last] == 0], nobody)

    def _restore_messages(self, block: Messages) -> None:
        early = np.flatnonzero(block.is_retraction == EARLY)
        early = early[_last_of_each(block.object_id[early], block.time_ms[early])]
        self.early.add(block.object_id[early], block.time_ms[early])
        coming = np.flatnonzero(block.is_retraction == 0)
        rows = coming[np.lexsort((block.object_id[coming], block.time_ms[coming]))]
        arrived = self._arrive(block, rows)
        is_alive = arrived.is_inside & (block.expiry_ms[rows] > self.now_ms)
        # An early retraction that stopped its message is in the message's expiry; others were forgotten.
        is_alive &= ~np.isin(block.object_id[rows], block.object_id[block.is_retraction == 1])
        self._publish(block, rows[is_alive], arrived._replace(ends=arrived.ends[is_alive]), nobody)
        self.early.forget(self.window.first_key(self.now_ms))

    # -- a batch ---------------------------------------------------------------------------------

    def apply(
        self,
        subscriptions: Subscriptions | None,
        messages: Messages | None,
        found: Found | None = None,
    ) -> Applied:
        """Apply a batch; return the changes of results and the outcome of the batch.

        Parameters
        ----------
        subscriptions, messages
            The rows of the batch.
        found
            With `candidates`: the pairs that replicas have found for these messages, from the
            subscriptions as of the batch before. If replicas had another state, None: all subscriptions
            are then evaluated again.
        """
        news = News(self.engine)
        evaluated, refilled_before = 0, self.matcher.refills
        # First of all: a replaced subscription may give other scores to objects that stay in its result.
        started = None if subscriptions is None else self._end(subscriptions, news)
        if self.candidates is None and started is not None:
            self._begin(started.log, np.flatnonzero(started.log.is_end == 0), news.emit)
        published = None if messages is None else self._take(messages, found, news.emit)
        if self.candidates is not None:
            # After the messages: replicas do not know new subscriptions yet; the window has the messages.
            if started is not None:
                self._begin(started.log, np.flatnonzero(started.log.is_end == 0), news.emit)
            evaluated = self._evaluate_passed_over(self.candidates, news.emit, everybody=found is None)
        counts = [one.counts for one in (started, published) if one is not None]
        refilled = self.matcher.refills - refilled_before
        counts.append(Counts(evaluated=evaluated, refilled=refilled))
        return Applied(
            news.net(),
            Counts(*map(sum, zip(Counts(), *counts, strict=True))),
            None if published is None else published.log,
            None if started is None else started.log,
        )

    # -- subscriptions ---------------------------------------------------------------------------

    def _end(self, block: Subscriptions, news: News) -> Done[Subscriptions]:
        """End subscriptions, including those that are replaced; return the rows that end and start."""
        last = _last_of_each(block.subscription_id, block.time_ms)
        known = np.zeros(len(last), dtype=np.bool_)
        for kind, matcher in ((STATIONARY, self.matcher), (BOOLEAN, self.booleans)):
            handles = handle_of(kind, 0) + block.subscription_id[last]
            here = matcher.subscriptions.ids.present(handles)
            if here.any():
                news.emit_ended(handles[here])
                self.engine.unsubscribe(handles[here])
            known |= here
        is_end = block.is_end[last] == 1
        ended = is_end & known
        counts = Counts(started=int(np.count_nonzero(~is_end)), ended=int(np.count_nonzero(ended)))
        return Done(counts, block.part(last[~is_end | ended]))

    def _begin(self, block: Subscriptions, rows: Ints, emit: Emit) -> None:
        words = self._words(block)
        is_boolean = block.is_boolean[rows] == 1
        for part in _chunks(rows[~is_boolean], _EVALUATED_MAX):
            handles = handle_of(STATIONARY, 0) + block.subscription_id[part]
            keywords = block.sorted_lists(words, part)
            interests = InterestBatch(block.weight_m[part], block.similarity[part], keywords)
            specs = StationarySpecs(interests, block.k[part])
            self.matcher.subscribe(handles, specs)
            emit(self.engine.evaluate(Positions(handles, block.x_m[part], block.y_m[part])))
        for part in _chunks(rows[is_boolean], _EVALUATED_MAX):
            handles = handle_of(BOOLEAN, 0) + block.subscription_id[part]
            self.booleans.subscribe(handles, boolean_specs(block, part, words, Lasts.none(len(part))))
            emit(self.engine.evaluate(Positions(handles, block.x_m[part], block.y_m[part])))

    def _evaluate_passed_over(self, candidates: Candidates, emit: Emit, *, everybody: bool) -> int:
        """Evaluate subscriptions that replicas may have missed, with the new messages; count them."""
        rows = self.matcher.subscriptions.rows
        handles = candidates.take_raised()
        if everybody:
            handles = rows["id"][self.matcher.subscriptions.used()]
        handles = handles[self.matcher.subscriptions.ids.present(handles)]
        for part in _chunks(handles, _EVALUATED_MAX):
            own = rows[self.matcher.subscriptions.slots(part)]
            emit(self.engine.evaluate(Positions(part, own["x_m"].copy(), own["y_m"].copy())))
        candidates.take_raised()
        return len(handles)

    # -- messages --------------------------------------------------------------------------------

    def _take(self, given: Messages, found: Found | None, emit: Emit) -> Done[Messages]:
        """Advance the time, remove retracted messages, and add new messages."""
        expiry_ms = self.window.expiry_ms(given.time_ms, given.expiry_ms.copy())
        marks, time_ms = given.is_retraction.copy(), given.time_ms.copy()
        block = replace(given, time_ms=time_ms, expiry_ms=expiry_ms, is_retraction=marks)
        self.now_ms = max(self.now_ms, int(block.time_ms.max()))
        if self.window.size.count:
            self._remove(self.window.due(self.now_ms), emit)
        else:
            self.engine.advance(self.now_ms, on_changes=emit, notify=True)
        retractions = np.flatnonzero(block.is_retraction != 0)
        retractions = retractions[_last_of_each(block.object_id[retractions], block.time_ms[retractions])]
        retracted = block.object_id[retractions]
        is_known = self.window.are_known(retracted)
        alive = self._remove(retracted[is_known], emit)

        coming = np.flatnonzero(block.is_retraction == 0)
        order = coming[np.lexsort((block.object_id[coming], block.time_ms[coming]))]
        new = order[self.window.are_new(block.object_id[order])]
        ids = block.object_id[new]
        is_kept = ~(np.isin(ids, retracted) | self.early.are_there(ids))
        arrived = self._arrive(block, new)
        is_alive = is_kept & arrived.is_inside & (block.expiry_ms[new] > self.now_ms)
        if self.candidates is not None:
            self.candidates.give(*(found or Found(_NOTHING, _NOTHING)))
        self._publish(block, new[is_alive], arrived._replace(ends=arrived.ends[is_alive]), emit)
        undone = int(np.count_nonzero(~is_kept))
        is_early = ~is_known & ~np.isin(retracted, ids)
        counts = Counts(
            published=int(np.count_nonzero(is_alive)),
            duplicates=len(coming) - len(new),
            expired=int(np.count_nonzero(is_kept & ~is_alive)),
            retracted=len(alive) + undone,
            unknown=int(np.count_nonzero(is_early)),
        )
        block.expiry_ms[new[~is_kept]] = 0  # in the log: after a restore these messages have ended
        early = self._remember(block, retractions[is_early])
        gone = retractions[np.isin(retracted, alive)]
        return Done(counts, block.part(np.concatenate([new[arrived.is_inside], gone, early])))

    def _remember(self, block: Messages, retractions: Ints) -> Ints:
        """Remember retractions whose messages may arrive, as of now; return those to be logged."""
        new_rows = retractions[~self.early.are_there(block.object_id[retractions])]
        block.time_ms[new_rows] = self.now_ms
        self.early.add(block.object_id[new_rows], block.time_ms[new_rows])
        self.early.forget(self.window.first_key(self.now_ms))
        new_rows = new_rows[self.early.are_there(block.object_id[new_rows])]
        block.is_retraction[new_rows] = EARLY
        return new_rows

    def _arrive(self, block: Messages, rows: Ints) -> Arrived:
        """Give new messages their places in the window, in the order of (time, id)."""
        columns = (block.object_id[rows], block.time_ms[rows], block.expiry_ms[rows])
        return self.window.arrive(*columns, self.now_ms)

    def _publish(self, block: Messages, rows: Ints, arrived: Arrived, emit: Emit) -> None:
        """Publish messages that are alive; messages that fall behind the window leave in between.

        In a count-based window as many leave as arrive, chunk by chunk, so that buffers are not
        recomputed before the messages that would refill them have arrived.
        """
        words = self._words(block)
        chunks = list(_chunks(np.arange(len(rows)), _MESSAGES_MAX))
        for number, part in enumerate(chunks):
            gone = len(arrived.left_ranks) * (number + 1) // len(chunks)
            if gone:
                self._leave(min(int(arrived.left_ranks[gone - 1]), arrived.clock), emit)
            part = part[np.argsort(block.object_id[rows[part]])]  # noqa: PLW2901 - as candidates want it
            which = rows[part]
            keywords = block.sorted_lists(words, which)
            objects = ObjectBatch(block.object_id[which], block.x_m[which], block.y_m[which], keywords)
            published = self.engine.publish(objects, arrived.ends[part], None, block.time_ms[which])
            emit(published.changes)
        if self.window.size.count:
            self._leave(arrived.clock, emit)
            self._remove(arrived.left_ids, emit)

    def _leave(self, rank: int, emit: Emit) -> None:
        """Advance the engine's clock to a rank, in a count-based window."""
        if rank > self.engine.now_ms:
            self.engine.advance(rank, on_changes=emit, notify=True)

    def _remove(self, object_ids: Ints, emit: Emit) -> Ints:
        """Remove those of some messages that are alive; return them."""
        alive = object_ids[self.engine.objects.table.ids.present(object_ids)]
        if len(alive):
            emit(self.engine.remove(alive))
        return alive

    def _words(self, block: Messages | Subscriptions) -> KeywordIds:
        """Return a number for each word of a block."""
        first = len(self.numbers)
        numbers, new_rows = self.numbers.take(block.high, block.low)
        self.engine.objects.weights.put_all(first, block.square[new_rows])
        return numbers[block.words]


def _chunks(rows: Ints, count_max: int) -> Iterator[Ints]:
    """Yield rows in chunks of at most `count_max`."""
    for start in range(0, len(rows), count_max):
        yield rows[start : start + count_max]


def _last_of_each(ids: Ints, time_ms: Ints) -> Ints:
    """Return the last row of each id, by time, then by position; in the order of ids."""
    order = np.lexsort((time_ms, ids))
    is_last = np.ones(len(order), dtype=np.bool_)
    is_last[:-1] = ids[order][1:] != ids[order][:-1]
    found: Ints = order[is_last]
    return found
