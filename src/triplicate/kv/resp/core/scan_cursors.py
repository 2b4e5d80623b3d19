"""Cursors of SCAN: numbers of 64 bits, as clients expect, for the keys at which scans go on. Pure."""

from __future__ import annotations

from collections import OrderedDict

CURSORS_MAX = 10_000
"""Cursors that a node remembers; beyond it the one that was given or used the longest ago is forgotten."""


class Cursors:
    """The cursors that a node has given."""

    def __init__(self) -> None:
        self._places: OrderedDict[int, tuple[str, bytes]] = OrderedDict()
        """Maps a cursor to its store and the key."""
        self._next = 1

    def __len__(self) -> int:
        return len(self._places)

    def give(self, store: str, key: bytes) -> int:
        """A cursor for the rest of a scan, which begins at the key."""
        cursor = self._next
        self._next += 1
        self._places[cursor] = store, key
        if len(self._places) > CURSORS_MAX:
            self._places.popitem(last=False)
        return cursor

    def find(self, store: str, cursor: int) -> bytes | None:
        """The key of a cursor, which stays good; None if it is of another store, or forgotten, or never was."""
        place = self._places.get(cursor)
        if place is None or place[0] != store:
            return None
        self._places.move_to_end(cursor)
        return place[1]
