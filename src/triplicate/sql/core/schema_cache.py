"""A cache of facts about statements and tables, valid for one version of the schema. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

Learned = TypeVar("Learned")

LONG_TEXT = 16 * 1024
"""A statement with more characters is not remembered: it is rarely repeated, and thousands of them would fill the memory."""
MAX_STATEMENT_BYTES = 1024 * 1024
"""The longest statement of a client, in characters."""
EXAMINED_CHARACTERS_MAX = 8 * MAX_STATEMENT_BYTES
"""The longest text for SQLite: the translation of a statement may be several times as long."""


class SchemaCache(Generic[Learned]):
    """A bounded cache that keeps the most recently used entries. Another version of the schema empties it.

    Args:
        capacity: upper bound on the entries.
        longest_key: longer keys, in characters, are not remembered.
    """

    def __init__(self, capacity: int, longest_key: int = LONG_TEXT) -> None:
        self._capacity = capacity
        self._longest_key = longest_key
        self._version = -1
        self._entries: OrderedDict[str, Learned] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def move_to(self, version: int) -> None:
        """The schema has this version now."""
        if version != self._version:
            self._entries.clear()
            self._version = version

    def find(self, key: str, version: int) -> Learned | None:
        """An entry for this version of the schema, as it is now; None where there is none. Its age stays."""
        if version != self._version:
            self.move_to(version)
        return self._entries.get(key)

    def get(self, key: str) -> Learned:
        """An entry that is in the cache. Raises KeyError."""
        self._entries.move_to_end(key)
        return self._entries[key]

    def remember(self, key: str, learned: Learned, version: int) -> None:
        """Add an entry, unless the schema has changed since `version`."""
        if version != self._version or len(key) > self._longest_key:
            return
        self._entries[key] = learned
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)
