"""The messages of the window that are alive, with their index: the partitions of a host share them.

A batch of messages is applied once. Messages that leave the window are taken out of the index at once, so
that no search finds them, and out of the table with the next batch: until then the partitions remove them
from their buffers.

Within a batch, messages arrive and retracted messages are removed, whether the message arrived before its
retraction or arrives later. The time is that of the latest message. The set of messages that count
follows from all messages, regardless of how they are split into batches (`window`, `early`).

Objects have their own ids: ties go to the smaller id.

Operations: those of the index, plus O(1) a message.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engine import EngineOptions
from engine.objects import Objects
from index.batches import Ints, KeywordIds, ObjectBatch
from index.tables.slots import Slots
from streaming.arrays.blocks import EARLY, Messages
from streaming.partition.applied import Counts
from streaming.partition.early import EarlyRetractions
from streaming.partition.rows import last_of_each
from streaming.partition.window import Arrived, Window
from streaming.partition.words import Words
from streaming.window_size import WindowSize


class Step(NamedTuple):
    """The outcome of a batch of messages."""

    counts: Counts
    came: Slots
    """New messages that are alive, in the order of their ids."""
    gone: Slots
    """Messages that were alive before."""
    log: Messages
    """The messages that have taken a place in the window, followed by the retractions."""


class LiveMessages:
    """The window of messages, and the index of those that are alive.

    Parameters
    ----------
    options
        The choice of the object index.
    size
        Which messages count.
    words
        The keywords, of which this structure reads the weights.
    """

    def __init__(self, options: EngineOptions, size: WindowSize, words: Words) -> None:
        self.token = secrets.token_hex(8)
        """Names this structure: partitions refer to the slots of its messages."""
        self.words_token = words.token
        self.objects = Objects(options.object_index, options.object_index())
        self.objects.weights = words.weights
        self.window = Window(size)
        self.early = EarlyRetractions(size)
        self.now_ms = 0
        """The time of the window; in a count-based window the clock of `objects` counts ranks."""
        self.step: Step | None = None
        """The last batch."""

    # -- from the log ----------------------------------------------------------------------------

    def restore(self, now_ms: int, next_number: int, block: Messages | None, words: KeywordIds) -> None:
        """Restore the messages from a log; must be called before any other method.

        Parameters
        ----------
        now_ms, next_number
            The time of the window, and the number of messages that had taken a place.
        block
            The messages that took a place, batch by batch, each batch followed by its retractions.
            Batches of which no message is in the window may be absent. None if there are none.
        words
            The numbers of the block's words.
        """
        self.now_ms = now_ms
        if block is not None:
            self._restore(block, words)
        self.window.next_number = next_number
        if not self.window.size.count:
            self.objects.due(now_ms)

    def _restore(self, block: Messages, words: KeywordIds) -> None:
        early = np.flatnonzero(block.is_retraction == EARLY)
        early = early[last_of_each(block.object_id[early], block.time_ms[early])]
        self.early.add(block.object_id[early], block.time_ms[early])
        coming = np.flatnonzero(block.is_retraction == 0)
        rows = coming[np.lexsort((block.object_id[coming], block.time_ms[coming]))]
        arrived = self._arrive(block, rows)
        is_alive = arrived.is_inside & (block.expiry_ms[rows] > self.now_ms)
        # An early retraction that stopped its message is in the message's expiry; others were forgotten.
        is_alive &= ~np.isin(block.object_id[rows], block.object_id[block.is_retraction == 1])
        self._insert(block, words, rows[is_alive], arrived.ends[is_alive])
        if self.window.size.count:
            self.objects.due(arrived.clock)
        self.early.forget(self.window.first_key(self.now_ms))

    # -- a batch ---------------------------------------------------------------------------------

    def apply(self, given: Messages, words: KeywordIds) -> Step:
        """Apply a batch of messages: advance the time, remove retracted messages, and add new ones.

        Parameters
        ----------
        given
            The messages.
        words
            The numbers of their words.
        """
        self.forget_gone()
        expiry_ms = self.window.expiry_ms(given.time_ms, given.expiry_ms.copy())
        marks, time_ms = given.is_retraction.copy(), given.time_ms.copy()
        block = replace(given, time_ms=time_ms, expiry_ms=expiry_ms, is_retraction=marks)
        self.now_ms = max(self.now_ms, int(block.time_ms.max()))
        expired = self._expired()
        retractions = np.flatnonzero(block.is_retraction != 0)
        retractions = retractions[last_of_each(block.object_id[retractions], block.time_ms[retractions])]
        retracted = block.object_id[retractions]
        is_known = self.window.are_known(retracted)
        removed = self._alive(retracted[is_known])
        removed = removed[~np.isin(removed, expired)]

        coming = np.flatnonzero(block.is_retraction == 0)
        order = coming[np.lexsort((block.object_id[coming], block.time_ms[coming]))]
        new = order[self.window.are_new(block.object_id[order])]
        ids = block.object_id[new]
        is_kept = ~(np.isin(ids, retracted) | self.early.are_there(ids))
        arrived = self._arrive(block, new)
        is_alive = is_kept & arrived.is_inside & (block.expiry_ms[new] > self.now_ms)
        gone = np.unique(np.concatenate([expired, removed, self._behind(arrived)]))
        came = self._insert(block, words, new[is_alive], arrived.ends[is_alive])
        gone_slots = self.objects.table.slots(gone)
        self.objects.hide(gone)
        self.objects.look_ahead(None)

        undone = int(np.count_nonzero(~is_kept))
        is_early = ~is_known & ~np.isin(retracted, ids)
        counts = Counts(
            published=int(np.count_nonzero(is_alive)),
            duplicates=len(coming) - len(new),
            expired=int(np.count_nonzero(is_kept & ~is_alive)),
            retracted=len(removed) + undone,
            unknown=int(np.count_nonzero(is_early)),
        )
        block.expiry_ms[new[~is_kept]] = 0  # in the log: after a restore these messages have ended
        early = self._remember(block, retractions[is_early])
        logged = retractions[np.isin(retracted, removed)]
        log = block.part(np.concatenate([new[arrived.is_inside], logged, early]))
        self.step = Step(counts, came, gone_slots, log)
        return self.step

    def forget_gone(self) -> None:
        """Remove the messages that left with the last batch from the table, too."""
        self.objects.remove_hidden()

    def _expired(self) -> Ints:
        """Return live messages whose lifetimes end by now, or which are behind a window of time."""
        if self.window.size.count:
            return self._alive(self.window.due(self.now_ms))
        return self.objects.due(self.now_ms)

    def _behind(self, arrived: Arrived) -> Ints:
        """Return live messages that fall behind a window of a count; advance the clock of the table."""
        if not self.window.size.count:
            return arrived.left_ids
        due = self.objects.due(max(arrived.clock, self.objects.now_ms))
        return np.concatenate([due, self._alive(arrived.left_ids)])

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

    def _insert(self, block: Messages, words: KeywordIds, rows: Ints, ends: Ints) -> Slots:
        """Insert messages that are alive into the table and the index; return their slots by id."""
        order = np.argsort(block.object_id[rows])
        which = rows[order]
        keywords = block.sorted_lists(words, which)
        objects = ObjectBatch(block.object_id[which], block.x_m[which], block.y_m[which], keywords)
        return self.objects.insert(objects, ends[order], None, block.time_ms[which])

    def _alive(self, object_ids: Ints) -> Ints:
        """Return those of some messages that are alive."""
        return object_ids[self.objects.table.ids.present(object_ids)]

    def check(self) -> None:
        """Verify the window and the objects.

        Raises
        ------
        InconsistentIndexError
            If an invariant does not hold; the message names it.
        """
        self.window.check()
        self.objects.check()
