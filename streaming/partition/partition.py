"""One partition: some of the subscriptions, and the window of messages, over an engine.

It takes a batch at a time and says how results change between batches. What it has learned follows from
what it was given, so that it can be built anew from the blocks of live messages and subscriptions.

Within a batch: subscriptions end and begin, messages come in the order of (time, id), and what is taken
back goes, whether it came before or in this batch. Time is that of the latest message.

Operations: those of the engine; O(1) a message and a subscription beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from engine import Engine, EngineOptions, Positions
from engine.boolean.matcher import BooleanMatcher
from engine.change_kernels import net
from engine.contracts import BOOLEAN, CHANGE_DTYPE, STANDING, Rows, handle_of, kinds_of, numbers_of
from engine.standing.matcher import StandingMatcher, StandingSpecs
from engine.windows import Lasts
from index.batches import Floats, InterestBatch, Ints, KeywordIds, ObjectBatch
from index.tables.order_kernels import order_of
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.arrays.changes import Changes
from streaming.arrays.numbers import Numbers
from streaming.partition.applied import Applied, Counts, Done, Found
from streaming.partition.booleans import boolean_specs
from streaming.partition.candidates import Candidates
from streaming.partition.score_kernels import scores_of
from streaming.partition.window import Window, WindowSize

_MESSAGES_MAX = 1_000
"""Published at once: enough to share the work, few enough that what comes and goes stays in caches."""
_EVALUATED_MAX = 20_000
"""Subscriptions evaluated at once."""

_NOTHING = np.empty(0, dtype=np.int64)

Tell = Callable[[Rows], None]
"""Is told of changes, one after the other."""


def _nobody(_rows: Rows) -> None:
    """Is told of changes that nobody need know of."""


class Partition:
    """Exact results of some subscriptions, batch by batch.

    Parameters
    ----------
    options
        Of the engine.
    window
        Which messages count.
    candidates
        Of the engine's subscription index, if others look whom messages concern; else None.
    """

    def __init__(
        self, options: EngineOptions, window: WindowSize, candidates: Candidates | None = None
    ) -> None:
        self.candidates = candidates
        self.engine = Engine(options, {STANDING: StandingMatcher, BOOLEAN: BooleanMatcher})
        self.numbers = Numbers()
        self.window = Window(window)
        self._dropped_to = 0
        """Of a window of so many messages: those of smaller numbers are not in the engine."""
        self.matcher: StandingMatcher = self.engine.matchers[STANDING]  # type: ignore[assignment]
        self.booleans: BooleanMatcher = self.engine.matchers[BOOLEAN]  # type: ignore[assignment]

    @property
    def subscription_count(self) -> int:
        """How many subscriptions there are."""
        return len(self.matcher) + len(self.booleans)

    def restore(
        self,
        now_ms: int,
        next_number: int,
        messages: list[tuple[int, Messages]],
        subscriptions: list[Subscriptions],
    ) -> None:
        """Become what a partition was, from what it has logged; before anything else.

        Parameters
        ----------
        now_ms, next_number
            Its time, and its next number.
        messages
            What was published in batches, in the order of numbers, with the first number of each; what
            was taken back is behind it. Those whose messages are all behind the window may be absent.
        subscriptions
            What began and ended in batches, in order.
        """
        self.engine.advance(now_ms)
        self.window.begin(messages[0][0] if messages else next_number)
        if messages:
            block = Messages.join([one for _, one in messages])
            rows = np.flatnonzero(block.is_retraction == 0)
            numbers = self.window.arrive(block.object_id[rows], block.time_ms[rows])
            gone = self.window.numbers_of(block.object_id[block.is_retraction == 1])
            first = max(0, next_number - self.window.size.count) if self.window.size.count else 0
            alive = (block.expiry_ms[rows] > now_ms) & (numbers >= first) & ~np.isin(numbers, gone)
            self._dropped_to = first
            self._insert(block, rows[alive], numbers[alive])
        self.window.forget(now_ms)
        self.engine.objects.windows.next_id = next_number
        if subscriptions:
            joined = Subscriptions.join(subscriptions)
            order = np.arange(len(joined))
            last = _last_of_each(joined.subscription_id, order)
            self._begin(joined, last[joined.is_end[last] == 0], _nobody)

    # -- a batch ---------------------------------------------------------------------------------

    def apply(
        self,
        subscriptions: Subscriptions | None,
        messages: Messages | None,
        found: Found | None = None,
    ) -> Applied:
        """Take a batch; return how results change, and what became of it.

        Parameters
        ----------
        subscriptions, messages
            What has come.
        found
            With `candidates`: what replicas have found for these messages, which knew subscriptions as
            they were behind the batch before; None if they did not, and all are evaluated anew.
        """
        told: list[Rows] = []
        scores: list[Floats] = []

        def tell(rows: Rows) -> None:
            told.append(rows)
            scores.append(self._scores(rows))

        first_number = self.window.next_number
        evaluated = 0
        begun = published = None
        if self.candidates is None and subscriptions is not None:
            begun = self._subscribe(subscriptions, tell)
        if messages is not None:
            published = self._publish_and_retract(messages, found, tell)
        if self.candidates is not None:
            # Behind the messages: replicas do not know them yet, but the window has the messages.
            begun = None if subscriptions is None else self._subscribe(subscriptions, tell)
            evaluated = self._evaluate_passed_over(self.candidates, tell, everybody=found is None)
        rows = np.concatenate([np.empty(0, dtype=CHANGE_DTYPE), *told])
        changes = self._net(rows, np.concatenate([np.empty(0), *scores]))
        counts = [one.counts for one in (begun, published) if one is not None]
        counts.append(Counts(evaluated=evaluated))
        return Applied(
            changes,
            Counts(*map(sum, zip(Counts(), *counts, strict=True))),
            first_number,
            None if published is None else published.log,
            None if begun is None else begun.log,
        )

    def _net(self, rows: Rows, scores: Floats) -> Changes:
        """Return what is different behind all changes, by object; what came and went is not."""
        # Who subscribes again under its number may be of another kind.
        numbers, ids = numbers_of(rows["handle"]), self.window.object_ids(rows["object_id"])
        order = order_of(ids, order_of(numbers, np.arange(len(rows))))
        kept = order[: net(numbers, ids, order)]
        return Changes(ids[kept], numbers[kept], rows["is_drop"][kept] == 1, scores[kept])

    def _scores(self, rows: Rows) -> Floats:
        """Return the scores of what enters, while it is there; 0 of what leaves or only matches."""
        scores = np.zeros(len(rows))
        entered = np.flatnonzero((rows["is_drop"] == 0) & (kinds_of(rows["handle"]) == STANDING))
        if len(entered):
            objects, subscriptions = self.engine.objects.table, self.matcher.subscriptions
            scores_of(
                objects.rows,
                subscriptions.rows,
                objects.slots(rows["object_id"][entered]),
                subscriptions.slots(rows["handle"][entered]),
                rows["r_m"].copy(),
                entered,
                self.engine.options.maxdist_m,
                scores,
            )
        return scores

    # -- subscriptions ---------------------------------------------------------------------------

    def _subscribe(self, block: Subscriptions, tell: Tell) -> Done[Subscriptions]:
        """Let subscriptions end and begin."""
        last = _last_of_each(block.subscription_id, block.time_ms)
        known = np.zeros(len(last), dtype=np.bool_)
        for kind, matcher in ((STANDING, self.matcher), (BOOLEAN, self.booleans)):
            handles = handle_of(kind, 0) + block.subscription_id[last]
            here = matcher.subscriptions.ids.present(handles)
            if here.any():
                tell(self._forget(handles[here]))
            known |= here
        is_end = block.is_end[last] == 1
        self._begin(block, last[~is_end], tell)
        ended = is_end & known
        counts = Counts(begun=int(np.count_nonzero(~is_end)), ended=int(np.count_nonzero(ended)))
        return Done(counts, block.part(last[~is_end | ended]))

    def _forget(self, handles: Ints) -> Rows:
        """End subscriptions; return what they lose."""
        held = [self.engine.held(int(handle))[0] for handle in handles]
        counts = [len(one) for one in held]
        rows = np.zeros(sum(counts), dtype=CHANGE_DTYPE)
        rows["handle"] = np.repeat(handles, counts)
        rows["object_id"] = np.concatenate([_NOTHING, *held])
        rows["is_drop"] = 1
        self.engine.unsubscribe(handles)
        return rows

    def _begin(self, block: Subscriptions, rows: Ints, tell: Tell) -> None:
        words = self._words(block)
        is_boolean = block.is_boolean[rows] == 1
        for part in _portions(rows[~is_boolean], _EVALUATED_MAX):
            handles = handle_of(STANDING, 0) + block.subscription_id[part]
            keywords = block.sorted_lists(words, part)
            interests = InterestBatch(block.weight_m[part], block.similarity[part], keywords)
            specs = StandingSpecs(interests, block.k[part], self._lasts(len(part)))
            self.matcher.subscribe(handles, specs)
            tell(self.engine.evaluate(Positions(handles, block.x_m[part], block.y_m[part])))
        for part in _portions(rows[is_boolean], _EVALUATED_MAX):
            handles = handle_of(BOOLEAN, 0) + block.subscription_id[part]
            self.booleans.subscribe(handles, boolean_specs(block, part, words, self._lasts(len(part))))
            tell(self.engine.evaluate(Positions(handles, block.x_m[part], block.y_m[part])))

    def _lasts(self, count: int) -> Lasts:
        """Return the window, of so many subscriptions; that of time is in the expiries of messages."""
        sizes = np.full(count, self.window.size.count, dtype=np.int64)
        return Lasts(np.zeros(count, dtype=np.int64), sizes)

    def _give(self, candidates: Candidates, found: Found | None, object_ids: Ints, numbers: Ints) -> None:
        """Hand on what replicas have found, by the messages' numbers."""
        if found is None or not len(object_ids):
            candidates.give(_NOTHING, _NOTHING)
            return
        order = np.argsort(object_ids)
        at = np.minimum(np.searchsorted(object_ids[order], found.object_id), len(order) - 1)
        is_new = object_ids[order][at] == found.object_id
        candidates.give(numbers[order][at][is_new], found.handle[is_new])

    def _evaluate_passed_over(self, candidates: Candidates, tell: Tell, *, everybody: bool) -> int:
        """Evaluate anew who may have been passed over, with what has just come; return how many."""
        rows = self.matcher.subscriptions.rows
        handles = candidates.take_raised()
        if everybody:
            handles = rows["id"][self.matcher.subscriptions.used()]
        handles = handles[self.matcher.subscriptions.ids.present(handles)]
        for part in _portions(handles, _EVALUATED_MAX):
            own = rows[self.matcher.subscriptions.slots(part)]
            tell(self.engine.evaluate(Positions(part, own["x_m"].copy(), own["y_m"].copy())))
        candidates.take_raised()
        return len(handles)

    # -- messages --------------------------------------------------------------------------------

    def _publish_and_retract(self, given: Messages, found: Found | None, tell: Tell) -> Done[Messages]:
        """Let time go on, what is taken back go, and messages come."""
        block = replace(given, expiry_ms=self.window.size.expiry_ms(given.time_ms, given.expiry_ms))
        now_ms = max(self.engine.now_ms, int(block.time_ms.max()))
        self.engine.advance(now_ms, on_changes=tell, tell=True)
        is_retraction = block.is_retraction == 1
        retracted = np.unique(block.object_id[is_retraction])
        known = self.window.numbers_of(retracted)
        alive = known[self.engine.objects.table.ids.present(known)]
        if len(alive):
            tell(self.engine.remove(alive))

        coming = np.flatnonzero(~is_retraction)
        order = coming[np.lexsort((block.object_id[coming], block.time_ms[coming]))]
        new = order[self.window.are_new(block.object_id[order])]
        kept = new[~np.isin(block.object_id[new], retracted)]
        rows = kept[block.expiry_ms[kept] > now_ms]
        numbers = self.window.arrive(block.object_id[rows], block.time_ms[rows])
        gone = self.window.object_ids(alive)
        if self.candidates is not None:
            self._give(self.candidates, found, block.object_id[rows], numbers)
        self._insert(block, rows, numbers, tell)
        self.window.forget(now_ms)
        undone = len(new) - len(kept)
        counts = Counts(
            published=len(rows),
            duplicates=len(coming) - len(new),
            expired=len(kept) - len(rows),
            retracted=len(alive) + undone,
            unknown=len(retracted) - len(known) - undone,
        )
        withdrawn = np.flatnonzero(is_retraction & np.isin(block.object_id, gone))
        return Done(counts, block.part(np.concatenate([rows, withdrawn])))

    def _insert(self, block: Messages, rows: Ints, numbers: Ints, tell: Tell = _nobody) -> None:
        """Publish messages, in this order."""
        words = self._words(block)
        for part in _portions(np.arange(len(rows)), _MESSAGES_MAX):
            which = rows[part]
            keywords = block.sorted_lists(words, which)
            objects = ObjectBatch(numbers[part], block.x_m[which], block.y_m[which], keywords)
            published = self.engine.publish(objects, block.expiry_ms[which], None, block.time_ms[which])
            tell(published.left)
            tell(published.changes)
            self._drop(int(numbers[part[-1]]) + 1 - self.window.size.count)

    def _drop(self, first_number: int) -> None:
        """Remove messages that are behind the window, which no result has any more."""
        if self.window.size.count:
            numbers = np.arange(self._dropped_to, max(self._dropped_to, first_number))
            there = numbers[self.engine.objects.table.ids.present(numbers)]
            self.engine.remove(there)
            self._dropped_to = max(self._dropped_to, first_number)

    def _words(self, block: Messages | Subscriptions) -> KeywordIds:
        """Return a number for each word of a block."""
        first = len(self.numbers)
        numbers, fresh = self.numbers.take(block.high, block.low)
        self.engine.objects.weights.put_all(first, block.square[fresh])
        return numbers[block.words]


def _portions(rows: Ints, count_max: int) -> Iterator[Ints]:
    """Yield rows in portions."""
    for start in range(0, len(rows), count_max):
        yield rows[start : start + count_max]


def _last_of_each(ids: Ints, time_ms: Ints) -> Ints:
    """Return the last row of each id, by time, then as they come; in the order of ids."""
    order = np.lexsort((time_ms, ids))
    is_last = np.ones(len(order), dtype=np.bool_)
    is_last[:-1] = ids[order][1:] != ids[order][:-1]
    found: Ints = order[is_last]
    return found
