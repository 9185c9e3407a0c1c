"""What the plans of a batch add to the state, by kind and owner: quotas include it."""

from __future__ import annotations

from collections import Counter


class Planned:
    """Counts of accepted plans, and of the one that is being made. Operations: O(1)."""

    def __init__(self) -> None:
        self._accepted: Counter[tuple[str, str]] = Counter()
        self._latest: list[tuple[tuple[str, str], int]] = []

    def __getitem__(self, owner: tuple[str, str]) -> int:
        """Return what accepted plans add for a kind and an owner."""
        return self._accepted[owner]

    def add(self, owner: tuple[str, str], count: int) -> None:
        """Count something of the plan that is being made."""
        self._latest.append((owner, count))

    def accept(self) -> None:
        """Include the plan that was made."""
        for owner, count in self._latest:
            self._accepted[owner] += count
        self._latest.clear()

    def reject(self) -> None:
        """Forget the plan that was made, or could not be made."""
        self._latest.clear()

    def clear(self) -> None:
        """Forget all plans: another batch begins."""
        self._accepted.clear()
        self._latest.clear()
