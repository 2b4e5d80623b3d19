"""The recent changes of a copy, kept for its watchers within a bound. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from triplicate.errors import PlaceLost
from triplicate.kv.core.store_interface import ChangeKind, KeyChange
from triplicate.kv.core.store_records import Effect, held_size_of

TAKE_MAX = 1000
"""Changes that one call of `take` looks at; a batch is never cut."""


class _Kept(NamedTuple):
    position: int
    effects: Sequence[Effect]
    size_bytes: int


class BufferedChanges(NamedTuple):
    """The next changes of a watcher."""

    changes: Sequence[KeyChange]
    position: int
    """All changes before it were looked at."""


class ChangeBuffer:
    """The effects of the last batches, oldest first.

    Args:
        size_bytes: upper bound of the keys and values kept.
        position: of the copy, before the first batch.
    """

    def __init__(self, size_bytes: int, position: int) -> None:
        self._limit_bytes = size_bytes
        self._kept: list[_Kept] = []
        self._start = 0
        """Index of the oldest batch in `_kept`; those before it are removed together now and then."""
        self._size_bytes = 0
        self.oldest = position
        """The oldest position from which no change is missing."""
        self.position = position
        """Position after the last batch."""

    def add(self, position: int, effects: Sequence[Effect]) -> None:
        """A batch is visible now. It ends at this position."""
        size_bytes = held_size_of(effects)
        self._kept.append(_Kept(position, effects, size_bytes))
        self._size_bytes += size_bytes
        self.position = position
        while self._size_bytes > self._limit_bytes:
            oldest = self._kept[self._start]
            self._size_bytes -= oldest.size_bytes
            self.oldest = oldest.position
            self._start += 1
        if self._start > len(self._kept) // 2:
            del self._kept[: self._start]
            self._start = 0

    def advance(self, position: int) -> None:
        """The copy has moved on without changes."""
        self.position = max(self.position, position)

    def check(self, position: int) -> None:
        """Raises PlaceLost: changes after this position are missing, or the copy has not reached it."""
        if position < self.oldest:
            raise PlaceLost(
                f"the changes after position {position} are no longer kept here, but those after {self.oldest}. Read the keys again, and "
                "watch from the position of that answer",
                self.oldest,
            )

    def take(self, position: int, prefix: bytes) -> BufferedChanges:
        """The changes of keys with a prefix after a position, some at a time.

        Raises:
            PlaceLost: changes after this position are missing.
        """
        self.check(position)
        changes: list[KeyChange] = []
        looked = 0
        for index in range(self._index_after(position), len(self._kept)):
            batch = self._kept[index]
            changes += [
                KeyChange(batch.position, effect.kind, effect.key, _shown(effect), effect.deadline_ms)
                for effect in batch.effects
                if effect.key.startswith(prefix)
            ]
            position = batch.position
            looked += len(batch.effects)
            if looked >= TAKE_MAX:
                return BufferedChanges(changes, position)
        return BufferedChanges(changes, max(position, self.position))

    def _index_after(self, position: int) -> int:
        """Index of the first batch that ends after a position."""
        low, high = self._start, len(self._kept)
        while low < high:
            middle = (low + high) // 2
            if self._kept[middle].position <= position:
                low = middle + 1
            else:
                high = middle
        return low


def _shown(effect: Effect) -> bytes | None:
    return effect.value if effect.kind is ChangeKind.PUT else None
