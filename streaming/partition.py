"""One partition: some of the subscriptions, and the window of messages, over an engine.

It takes a batch at a time and says how results change between batches. What it has learned follows from
what it was given, so that it can be built anew from the blocks of live messages and subscriptions.

Within a batch: subscriptions end and begin, messages come in the order of (time, id), and what is taken
back goes, whether it came before or in this batch. Time is that of the latest message.

Operations: those of the engine; O(1) a message and a subscription beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from engine import Engine, EngineOptions, Positions
from engine.contracts import CHANGE_DTYPE, STANDING, Rows, handle_of
from engine.standing.matcher import StandingMatcher, StandingSpecs
from engine.windows import Lasts
from index.batches import Floats, InterestBatch, Ints, KeywordIds, KeywordLists, ObjectBatch
from streaming.blocks import Messages, Subscriptions
from streaming.changes import Changes
from streaming.numbers import Numbers
from streaming.window import Window, WindowSize

_MESSAGES_MAX = 1_000
"""Published at once: enough to share the work, few enough that what comes and goes stays in caches."""
_EVALUATED_MAX = 20_000
"""Subscriptions evaluated at once."""
_NOTHING = np.empty(0, dtype=np.int64)

Tell = Callable[[Rows], None]
"""Is told of changes, one after the other."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of a batch."""

    published: int = 0
    duplicates: int = 0
    """Messages whose object is known."""
    expired: int = 0
    """Messages that came after their expiry, or behind the window."""
    retracted: int = 0
    unknown: int = 0
    """What was to be taken back, or to end, and was not there."""


class Partition:
    """Exact results of some subscriptions, batch by batch.

    Parameters
    ----------
    options
        Of the engine.
    window
        Which messages count.
    """

    def __init__(self, options: EngineOptions, window: WindowSize) -> None:
        self.engine = Engine(options, {STANDING: StandingMatcher})
        self.numbers = Numbers()
        self.window = Window(window)
        self._dropped_to = 0
        """Of a window of so many messages: those of smaller numbers are not in the engine."""
        self._matcher: StandingMatcher = self.engine.matchers[STANDING]  # type: ignore[assignment]

    @property
    def subscription_count(self) -> int:
        """How many subscriptions there are."""
        return len(self._matcher)

    # -- a batch ---------------------------------------------------------------------------------

    def apply(
        self, subscriptions: Subscriptions | None, messages: Messages | None
    ) -> tuple[Changes, Counts]:
        """Take a batch; return how results change, and what became of it."""
        told: list[Rows] = []
        scores: list[Floats] = []

        def tell(rows: Rows) -> None:
            told.append(rows)
            scores.append(self._scores(rows))

        unknown = 0
        if subscriptions is not None:
            unknown = self._subscribe(subscriptions, tell)
        counts = Counts(unknown=unknown)
        if messages is not None:
            counts = self._publish_and_retract(messages, tell, unknown)
        rows = np.concatenate([np.empty(0, dtype=CHANGE_DTYPE), *told])
        return self._net(rows, np.concatenate([np.empty(0), *scores])), counts

    def _net(self, rows: Rows, scores: Floats) -> Changes:
        """Return what is different behind all changes: what came and went, or went and came, is not."""
        order = np.lexsort((rows["object_id"], rows["handle"]))
        handles, ids = rows["handle"][order], rows["object_id"][order]
        is_last = np.ones(len(order), dtype=np.bool_)
        is_last[:-1] = (handles[1:] != handles[:-1]) | (ids[1:] != ids[:-1])
        ends = np.flatnonzero(is_last)
        changes = np.diff(ends, prepend=-1)
        kept = order[ends[changes % 2 == 1]]
        found = rows[kept]
        return Changes(
            self.window.object_ids(found["object_id"]),
            found["handle"] - handle_of(STANDING, 0),
            found["is_drop"] == 1,
            scores[kept],
        )

    def _scores(self, rows: Rows) -> Floats:
        """Return the scores of what enters, while it is there; 0 of what leaves."""
        scores = np.zeros(len(rows))
        entered = np.flatnonzero(rows["is_drop"] == 0)
        if len(entered):
            objects, subscriptions = self.engine.objects.table, self._matcher.subscriptions
            item = objects.rows[objects.slots(rows["object_id"][entered])]
            owner = subscriptions.rows[subscriptions.slots(rows["handle"][entered])]
            dx, dy = owner["x_m"] - item["x_m"], owner["y_m"] - item["y_m"]
            length = np.sqrt(dx * dx + dy * dy) + rows["r_m"][entered]
            scores[entered] = length / (self.engine.options.maxdist_m + owner["weight_m"])
        return scores

    # -- subscriptions ---------------------------------------------------------------------------

    def _subscribe(self, block: Subscriptions, tell: Tell) -> int:
        """Let subscriptions end and begin; return how many were to end that are not there."""
        last = _last_of_each(block.subscription_id, block.time_ms)
        handles = handle_of(STANDING, 0) + block.subscription_id[last]
        known = self._matcher.subscriptions.ids.present(handles)
        if known.any():
            tell(self._forget(handles[known]))
        is_end = block.is_end[last] == 1
        self._begin(block, last[~is_end], tell)
        return int(np.count_nonzero(is_end & ~known))

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
        for part in _portions(rows, _EVALUATED_MAX):
            handles = handle_of(STANDING, 0) + block.subscription_id[part]
            keywords = _sorted_lists(block, words, part)
            interests = InterestBatch(block.weight_m[part], block.similarity[part], keywords)
            count = np.full(len(part), self.window.size.count, dtype=np.int64)
            lasts = Lasts(np.zeros(len(part), dtype=np.int64), count)
            self._matcher.subscribe(handles, StandingSpecs(interests, block.k[part], lasts))
            tell(self.engine.evaluate(Positions(handles, block.x_m[part], block.y_m[part])))

    # -- messages --------------------------------------------------------------------------------

    def _publish_and_retract(self, block: Messages, tell: Tell, unknown: int) -> Counts:
        """Let time go on, what is taken back go, and messages come."""
        now_ms = max(self.engine.now_ms, int(block.time_ms.max()))
        self.engine.advance(now_ms, on_changes=tell, tell=True)
        is_retraction = block.is_retraction == 1
        retracted = np.unique(block.object_id[is_retraction])
        known = self.window.numbers_of(retracted)
        alive = known[self.engine.objects.table.ids.present(known)]
        if len(alive):
            tell(self.engine.remove(alive))

        given = np.flatnonzero(~is_retraction)
        order = given[np.lexsort((block.object_id[given], block.time_ms[given]))]
        new = order[self.window.are_new(block.object_id[order])]
        kept = new[~np.isin(block.object_id[new], retracted)]
        expiry_ms = self.window.size.expiry_ms(block.time_ms, block.expiry_ms)
        rows = kept[expiry_ms[kept] > now_ms]
        self._publish(block, rows, expiry_ms[rows], tell)
        self.window.forget(now_ms)
        undone = len(new) - len(kept)
        return Counts(
            published=len(rows),
            duplicates=len(given) - len(new),
            expired=len(kept) - len(rows),
            retracted=len(alive) + undone,
            unknown=unknown + len(retracted) - len(known) - undone,
        )

    def _publish(self, block: Messages, rows: Ints, expiry_ms: Ints, tell: Tell) -> None:
        """Publish messages, in this order."""
        words = self._words(block)
        numbers = self.window.arrive(block.object_id[rows], block.time_ms[rows])
        for part in _portions(np.arange(len(rows)), _MESSAGES_MAX):
            which = rows[part]
            keywords = _sorted_lists(block, words, which)
            objects = ObjectBatch(numbers[part], block.x_m[which], block.y_m[which], keywords)
            published = self.engine.publish(objects, expiry_ms[part], None, block.time_ms[which])
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


def _sorted_lists(block: Messages | Subscriptions, words: KeywordIds, rows: Ints) -> KeywordLists:
    """Return the keyword lists of some rows, each increasing."""
    lists = block.lists(words, rows)
    owners = np.repeat(np.arange(len(rows)), np.diff(lists.offsets))
    return KeywordLists(lists.offsets, lists.ids[np.lexsort((lists.ids, owners))])
