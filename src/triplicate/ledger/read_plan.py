"""Which replica to read an entry from next, and what the answers prove.

Source: BookKeeper `PendingReadOp`.
"""

from __future__ import annotations

from collections.abc import Sequence


class ReadPlan:
    """The search for one entry among its replicas.

    An entry is absent only after enough explicit negatives. An error, a timeout, a fenced answer or a wrong digest is a failure of
    that replica and proves nothing about the entry. Several replicas may be read at the same time.

    Args:
        entry_id: the entry.
        replicas: bookie ids in the order in which they are to be read.
        absent_needed: explicit negatives that prove absence: all replicas for an ordinary read, write quorum - ack quorum + 1 for
            recovery.
    """

    __slots__ = ("_absent", "_absent_needed", "_awaited", "_failures", "_untried", "entry_id")

    def __init__(self, entry_id: int, replicas: Sequence[str], absent_needed: int) -> None:
        assert 1 <= absent_needed <= len(replicas), "absence needs between one and all replicas"
        self.entry_id = entry_id
        self._untried = list(replicas)
        self._awaited: dict[str, None] = {}
        self._absent: dict[str, None] = {}
        self._failures: dict[str, str] = {}
        self._absent_needed = absent_needed

    def next_replica(self) -> str | None:
        """The bookie to read from next, which is then awaited; None when none is left."""
        if not self._untried:
            return None
        bookie_id = self._untried.pop(0)
        self._awaited[bookie_id] = None
        return bookie_id

    def absent(self, bookie_id: str) -> None:
        """A replica explicitly denied the entry or the ledger."""
        if bookie_id in self._awaited:
            del self._awaited[bookie_id]
            self._absent[bookie_id] = None

    def failed(self, bookie_id: str, reason: str) -> None:
        """A replica failed to deliver the entry; whether it has the entry is unknown."""
        if bookie_id in self._awaited:
            del self._awaited[bookie_id]
            self._failures[bookie_id] = reason

    @property
    def is_absent(self) -> bool:
        """Whether enough replicas denied the entry."""
        return len(self._absent) >= self._absent_needed

    @property
    def is_exhausted(self) -> bool:
        """Whether every replica was read and answered or failed, and absence is not proven."""
        return not self._untried and not self._awaited and not self.is_absent

    @property
    def awaited(self) -> list[str]:
        """The replicas that were read from and have not answered."""
        return list(self._awaited)

    @property
    def has_untried(self) -> bool:
        """Whether a replica is left that was not read from."""
        return bool(self._untried)

    @property
    def unhelpful(self) -> list[str]:
        """The replicas that did not deliver the entry, for any reason."""
        return [*self._failures, *self._absent]

    def report(self) -> str:
        """The answer of each replica, for an error message."""
        said = [f"{bookie_id}: {reason}" for bookie_id, reason in self._failures.items()]
        said += [f"{bookie_id}: has no such entry" for bookie_id in self._absent]
        said += [f"{bookie_id}: no answer yet" for bookie_id in self._awaited]
        said += [f"{bookie_id}: not asked" for bookie_id in self._untried]
        return "; ".join(said)
