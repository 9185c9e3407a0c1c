"""Keywords to small integers, counted, so that a word nobody uses any more gives its number back."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from index.batches import KeywordIds


class Vocabulary:
    """Numbers for keywords. `take` and `give_back` O(1) a keyword, plus sorting the few numbers."""

    def __init__(self) -> None:
        self._number_of: dict[str, int] = {}
        self._uses: dict[str, int] = {}
        self._words: list[str] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._number_of)

    def take(self, keywords: Iterable[str]) -> KeywordIds:
        """Numbers of the keywords, increasing; each is held until given back."""
        numbers = []
        for word in keywords:
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
            self._uses[word] += 1
            numbers.append(number)
        return np.array(sorted(numbers), dtype=np.int32)

    def word(self, number: int) -> str:
        """Return the keyword that has a number."""
        return self._words[number]

    def give_back(self, keywords: Iterable[str]) -> None:
        """Release what `take` took."""
        for word in keywords:
            self._uses[word] -= 1
            if self._uses[word] == 0:
                del self._uses[word]
                self._free.append(self._number_of.pop(word))
