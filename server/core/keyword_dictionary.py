"""Keywords as small integers with use counts; the number of an unused keyword is released."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise

import numpy as np

from index.batches import KeywordIds, KeywordLists


class KeywordDictionary:
    """Numbers of keywords. `take` and `give_back` cost O(1) per keyword, plus sorting the few numbers.

    Parameters
    ----------
    on_new
        Called with the number and the keyword whenever a keyword gets a number.
    """

    def __init__(self, on_new: Callable[[int, str], None] = lambda _number, _word: None) -> None:
        self._on_new = on_new
        self._number_of: dict[str, int] = {}
        self._uses: dict[str, int] = {}
        self._words: list[str] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._number_of)

    def take(self, keywords: Iterable[str]) -> KeywordIds:
        """Return the numbers of keywords in increasing order; each is in use until released."""
        numbers = []
        for word in keywords:
            numbers.append(self._number(word))
            self._uses[word] += 1
        return np.array(sorted(numbers), dtype=np.int32)

    def _number(self, word: str) -> int:
        """Return the number of a word; assign a new one if it has none."""
        number = self._number_of.get(word)
        if number is None:
            if self._free:
                number = self._free.pop()
                self._words[number] = word
            else:
                number = len(self._words)
                self._words.append(word)
            self._number_of[word] = number
            self._uses[word] = 0
            self._on_new(number, word)
        return number

    def find(self, word: str) -> int | None:
        """Return the number of a keyword; None if none is in use."""
        return self._number_of.get(word)

    def vocabulary(self) -> list[str]:
        """Return a keyword for each number; the entries of free numbers have no meaning."""
        return self._words

    def take_all(self, rows: Sequence[Sequence[str]]) -> KeywordLists:
        """Acquire the keywords of many rows, each without repetitions."""
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        words = list(chain.from_iterable(rows))
        for word, uses in Counter(words).items():
            self._number(word)
            self._uses[word] += uses
        numbers = np.fromiter(map(self._number_of.__getitem__, words), dtype=np.int32, count=len(words))
        owners = np.repeat(np.arange(len(rows)), counts)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        return KeywordLists(offsets, numbers[np.lexsort((numbers, owners))])

    def words(self, rows: KeywordLists) -> list[tuple[str, ...]]:
        """Return the keywords of many rows, each row sorted."""
        words = list(map(self._words.__getitem__, rows.ids.tolist()))
        ends = pairwise(rows.offsets.tolist())
        return [tuple(sorted(words[start:end])) for start, end in ends]

    def row(self, numbers: KeywordIds) -> tuple[str, ...]:
        """Return the keywords of one row, sorted."""
        return tuple(sorted(map(self._words.__getitem__, numbers.tolist())))

    def give_back(self, keywords: Iterable[str]) -> None:
        """Release keywords that `take` acquired."""
        for word in keywords:
            self._release(word, 1)

    def give_back_all(self, rows: KeywordLists) -> None:
        """Release the keywords of many rows."""
        for number, uses in Counter(rows.ids.tolist()).items():
            self._release(self._words[number], uses)

    def _release(self, word: str, uses: int) -> None:
        self._uses[word] -= uses
        if self._uses[word] == 0:
            del self._uses[word]
            number = self._number_of.pop(word)
            self._words[number] = ""
            self._free.append(number)
