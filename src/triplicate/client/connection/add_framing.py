"""The bytes around an entry in the frame of its add, for each version of the protocol. A writer chooses one of them for good."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from triplicate.wire import FLAG_HIGH_PRIORITY, FLAG_RECOVERY_ADD, V3AddEncoder, add_prefix, v3


class AddFraming(Protocol):
    """Frame of an add = head, entry, tail."""

    reusable: bool
    """Whether a head fits every entry of its size, and not only the one that it was made for."""
    tail: bytes

    def head(self, entry_id: int, entry_size: int) -> bytes:
        """The head for a complete entry of `entry_size` bytes."""


class V2AddFraming:
    """Length, header word, master key: equal for all entries of a size."""

    reusable = True
    tail = b""

    def __init__(self, master_key: bytes, *, recovery: bool = False) -> None:
        self._master_key = master_key
        self._flags = FLAG_RECOVERY_ADD | FLAG_HIGH_PRIORITY if recovery else 0

    def head(self, entry_id: int, entry_size: int) -> bytes:
        """See `AddFraming.head`."""
        return add_prefix(entry_size, self._flags, self._master_key)


class V3AddFraming:
    """Every add has its own transaction id, which is the same for all bookies that get it.

    Args:
        transactions: of the pool whose connections carry the adds.
    """

    reusable = False

    def __init__(
        self, ledger_id: int, master_key: bytes, transactions: Iterator[int], *, recovery: bool = False, deferred_sync: bool = False
    ) -> None:
        priority = v3.HIGH_PRIORITY if recovery else None
        self._encoder = V3AddEncoder(ledger_id, master_key, recovery=recovery, deferred_sync=deferred_sync, priority=priority)
        self._transactions = transactions
        self.tail = self._encoder.tail

    def head(self, entry_id: int, entry_size: int) -> bytes:
        """See `AddFraming.head`."""
        return self._encoder.head(entry_id, next(self._transactions), entry_size)
