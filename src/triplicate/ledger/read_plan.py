"""Which replica to ask for an entry, and what the answers add up to.

Source: BookKeeper `PendingReadOp`.
"""

from __future__ import annotations

from collections.abc import Sequence


class ReadPlan:
    """The search for one entry among its replicas.

    An entry is absent only on enough explicit negatives; an error, a timeout, a fenced answer or a bad digest is that replica's
    failure and says nothing about the entry. Several replicas may be asked at the same time.

    Args:
        entry_id: what is looked for.
        replicas: bookie ids in the order in which they are to be asked.
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
        """The bookie to ask next, which is noted as asked; None when there is none left."""
        if not self._untried:
            return None
        bookie_id = self._untried.pop(0)
        self._awaited[bookie_id] = None
        return bookie_id

    def absent(self, bookie_id: str) -> None:
        """A replica said explicitly that it has no such entry or no such ledger."""
        if bookie_id in self._awaited:
            del self._awaited[bookie_id]
            self._absent[bookie_id] = None

    def failed(self, bookie_id: str, reason: str) -> None:
        """A replica failed to deliver; whether it has the entry is unknown."""
        if bookie_id in self._awaited:
            del self._awaited[bookie_id]
            self._failures[bookie_id] = reason

    @property
    def is_absent(self) -> bool:
        """Whether enough replicas denied the entry."""
        return len(self._absent) >= self._absent_needed

    @property
    def is_exhausted(self) -> bool:
        """Whether every replica was asked and answered, and absence is still not proven."""
        return not self._untried and not self._awaited and not self.is_absent

    @property
    def awaited(self) -> list[str]:
        """The replicas that were asked and have not answered."""
        return list(self._awaited)

    @property
    def has_untried(self) -> bool:
        """Whether there is a replica that was not asked."""
        return bool(self._untried)

    @property
    def unhelpful(self) -> list[str]:
        """The replicas that did not deliver, whatever they said."""
        return [*self._failures, *self._absent]

    def report(self) -> str:
        """What each replica said, for an error message."""
        said = [f"{bookie_id}: {reason}" for bookie_id, reason in self._failures.items()]
        said += [f"{bookie_id}: has no such entry" for bookie_id in self._absent]
        said += [f"{bookie_id}: no answer yet" for bookie_id in self._awaited]
        said += [f"{bookie_id}: not asked" for bookie_id in self._untried]
        return "; ".join(said)
