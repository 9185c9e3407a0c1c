"""One partition: a share of the subscriptions, over the messages that all partitions of a host share.

A partition takes one batch at a time and returns the changes of results between batches. Its state
follows from its input, so it can be rebuilt from the blocks of its subscriptions, over the messages as
they were after the same batch.

The messages have taken the batch before (`LiveMessages.apply`), so all searches find what is alive after
it. New messages enter buffers, and messages that are gone leave them; then subscriptions start. Only the
results after the whole batch count: meanwhile, buffers hold new messages beside those that leave, so
that fewer of them have to be rebuilt.

Operations: those of the engine, plus O(1) a message and a subscription.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine import Engine, EngineOptions, Positions
from engine.boolean.matcher import BooleanMatcher
from engine.contracts import BOOLEAN, STATIONARY, handle_of
from engine.stationary.matcher import StationaryMatcher, StationarySpecs
from engine.windows import Lasts
from index.batches import InterestBatch, Ints, KeywordIds
from index.tables.slots import Slots
from streaming.arrays.blocks import Subscriptions
from streaming.partition.applied import Applied, Counts, Found
from streaming.partition.booleans import boolean_specs
from streaming.partition.candidates import Candidates
from streaming.partition.live_messages import LiveMessages, Step
from streaming.partition.news import Emit, News, nobody
from streaming.partition.rows import chunks, last_of_each

_MESSAGES_MAX = 1_000
"""Messages matched at once: enough to share the work, few enough that their changes stay in caches."""
_EVALUATED_MAX = 20_000
"""Subscriptions evaluated at once."""

_NOTHING = np.empty(0, dtype=np.int64)


class Partition:
    """Exact results of a share of the subscriptions, batch by batch.

    Parameters
    ----------
    options
        The options of the engine.
    messages
        The live messages.
    candidates
        The candidates of the engine's subscription index, if replicas match the messages; else None.
    """

    def __init__(
        self, options: EngineOptions, messages: LiveMessages, candidates: Candidates | None = None
    ) -> None:
        self.candidates = candidates
        self.engine = Engine(
            options, {STATIONARY: StationaryMatcher, BOOLEAN: BooleanMatcher}, messages.objects
        )
        self.matcher: StationaryMatcher = self.engine.matchers[STATIONARY]  # type: ignore[assignment]
        self.booleans: BooleanMatcher = self.engine.matchers[BOOLEAN]  # type: ignore[assignment]

    @property
    def subscription_count(self) -> int:
        """The number of subscriptions."""
        return len(self.matcher) + len(self.booleans)

    def restore(self, block: Subscriptions, words: KeywordIds) -> None:
        """Restore the subscriptions from a log; must be called before any other method.

        Parameters
        ----------
        block
            The subscriptions that started and ended, batch by batch, in order.
        words
            The numbers of their words.
        """
        last = last_of_each(block.subscription_id, np.arange(len(block)))
        self._begin(block, words, last[block.is_end[last] == 0], nobody)

    # -- a batch ---------------------------------------------------------------------------------

    def apply(
        self,
        subscriptions: Subscriptions | None,
        words: KeywordIds,
        step: Step | None,
        found: Found | None = None,
    ) -> Applied:
        """Apply a batch; return the changes of results and the outcome of the batch.

        Parameters
        ----------
        subscriptions
            The rows of the batch.
        words
            The numbers of the words of the subscriptions.
        step
            What the batch has changed in the messages; None if it has no messages.
        found
            With `candidates`: the pairs that replicas have found for these messages, from the
            subscriptions as of the batch before. If replicas had another state, None: all subscriptions
            are then evaluated again.
        """
        news = News(self.engine)
        evaluated, refilled_before = 0, self.matcher.refills
        turnover = None if subscriptions is None else self._turnover(subscriptions)
        if turnover is not None:
            # Before the messages: the buffers still have the scores of the results before the batch.
            self._end(turnover.top_k, news)
            news.ending = turnover.booleans
        if step is not None:
            if self.candidates is not None:
                self.candidates.give(*(found or Found(_NOTHING, _NOTHING)))
            self._admit(step.came, news.emit)
            if len(step.gone):
                news.emit(self.engine.drop(step.gone))
        if subscriptions is not None and turnover is not None:
            # After the messages: these matches are looked up, and the index has the messages.
            self._end(turnover.booleans, news)
            rows = turnover.rows[subscriptions.is_end[turnover.rows] == 0]
            self._begin(subscriptions, words, rows, news.emit)
        if self.candidates is not None:
            # Replicas do not know new subscriptions yet.
            evaluated = self._evaluate_passed_over(self.candidates, news.emit, everybody=found is None)
        counts = [Counts(evaluated=evaluated, refilled=self.matcher.refills - refilled_before)]
        counts += [one.counts for one in (turnover, step) if one is not None]
        return Applied(
            news.net(),
            Counts(*map(sum, zip(Counts(), *counts, strict=True))),
            None if step is None else step.log,
            None if turnover is None else turnover.log,
        )

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        The messages that are gone must have left the table (`LiveMessages.forget_gone`).

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """
        self.engine.check()

    # -- subscriptions ---------------------------------------------------------------------------

    def _turnover(self, block: Subscriptions) -> Turnover:
        """Return the subscriptions that a batch ends and starts."""
        last = last_of_each(block.subscription_id, block.time_ms)
        top_k = handle_of(STATIONARY, 0) + block.subscription_id[last]
        booleans = handle_of(BOOLEAN, 0) + block.subscription_id[last]
        are_top_k = self.matcher.subscriptions.ids.present(top_k)
        are_booleans = self.booleans.subscriptions.ids.present(booleans)
        is_end = block.is_end[last] == 1
        ended = is_end & (are_top_k | are_booleans)
        counts = Counts(started=int(np.count_nonzero(~is_end)), ended=int(np.count_nonzero(ended)))
        rows = last[~is_end | ended]
        return Turnover(counts, rows, block.part(rows), top_k[are_top_k], booleans[are_booleans])

    def _end(self, handles: Ints, news: News) -> None:
        if len(handles):
            news.emit_ended(handles)
            self.engine.unsubscribe(handles)

    def _begin(self, block: Subscriptions, words: KeywordIds, rows: Ints, emit: Emit) -> None:
        is_boolean = block.is_boolean[rows] == 1
        for part in chunks(rows[~is_boolean], _EVALUATED_MAX):
            handles = handle_of(STATIONARY, 0) + block.subscription_id[part]
            keywords = block.sorted_lists(words, part)
            interests = InterestBatch(block.weight_m[part], block.similarity[part], keywords)
            specs = StationarySpecs(interests, block.k[part])
            self.matcher.subscribe(handles, specs)
            emit(self.engine.evaluate(Positions(handles, block.x_m[part], block.y_m[part])))
        for part in chunks(rows[is_boolean], _EVALUATED_MAX):
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
        for part in chunks(handles, _EVALUATED_MAX):
            own = rows[self.matcher.subscriptions.slots(part)]
            emit(self.engine.evaluate(Positions(part, own["x_m"].copy(), own["y_m"].copy())))
        candidates.take_raised()
        return len(handles)

    # -- messages --------------------------------------------------------------------------------

    def _admit(self, came: Slots, emit: Emit) -> None:
        """Match new messages, which are in the order of their ids, as candidates want it."""
        for part in chunks(came, _MESSAGES_MAX):
            emit(self.engine.admit(self.engine.objects.batch(part), part).changes)


class Turnover(NamedTuple):
    """The subscriptions that a batch ends and starts."""

    counts: Counts
    rows: Ints
    """The rows that count: the last one of each subscription that starts, or that was there and ends."""
    log: Subscriptions
    """These rows."""
    top_k: Ints
    """The handles of those that end, including those that are replaced."""
    booleans: Ints
