"""The last-add-confirmed that follows from the answers of an ensemble's bookies.

An answer proves something only when the silent bookies could not have confirmed anything beyond it. The rule is per
write quorum: in every run of write-quorum consecutive positions fewer than an ack quorum may be unknown. Counting answers of the
whole ensemble instead is wrong as soon as the ensemble is larger than the write quorum.
Source: BookKeeper `ReadLastConfirmedOp`, `RoundRobinDistributionSchedule`.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.ledger.schedule import is_covered


class LastConfirmed:
    """Collects one answer per position of the last segment's ensemble.

    An explicit "no entry" or "no ledger" is an answer; an error, a timeout or a lost connection is not.

    Args:
        ensemble: bookie ids by position. write_quorum, ack_quorum: of the ledger.
    """

    def __init__(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int) -> None:
        self.ensemble = tuple(ensemble)
        self.last_add_confirmed = -1
        self._write_quorum = write_quorum
        self._ack_quorum = ack_quorum
        self._unknown: dict[int, str] = dict.fromkeys(range(len(self.ensemble)), "no answer yet")
        self._waiting: dict[int, None] = dict.fromkeys(range(len(self.ensemble)))
        self._lengths: dict[int, int] = {}

    def answered(self, position: int, entry_id: int, last_add_confirmed: int, length: int) -> None:
        """A bookie sent its last entry, and its digest holds.

        Args:
            entry_id: the entry's own id, which may be unconfirmed and is never taken as the last-add-confirmed.
            last_add_confirmed: what the entry's header says.
            length: ledger length in payload bytes up to and including that entry.
        """
        self._record(position)
        self._lengths[entry_id] = length
        self.last_add_confirmed = max(self.last_add_confirmed, last_add_confirmed)

    def nothing_there(self, position: int) -> None:
        """A bookie explicitly denied having an entry of the ledger."""
        self._record(position)

    def damaged(self, position: int) -> None:
        """A bookie answered with an entry whose digest is wrong: it was reached, and fenced if requested, but its answer proves nothing.

        Only recovery may use this: it reads forward from the value that it learned, so a value too low is harmless.
        """
        self._record(position)

    def failed(self, position: int, reason: str) -> None:
        """A bookie gave no usable answer: its entries stay unknown."""
        self._waiting.pop(position, None)
        if position in self._unknown:
            self._unknown[position] = reason

    @property
    def is_covered(self) -> bool:
        """Whether no ack quorum can hide among the bookies that are unknown."""
        return is_covered(tuple(self._unknown), len(self.ensemble), self._write_quorum, self._ack_quorum)

    @property
    def is_exhausted(self) -> bool:
        """Whether every bookie answered or failed, and coverage is not reached."""
        return not self._waiting and not self.is_covered

    @property
    def waiting(self) -> list[str]:
        """The bookies that have not answered yet."""
        return [self.ensemble[position] for position in self._waiting]

    def length_at(self, entry_id: int) -> int | None:
        """Ledger length up to and including `entry_id`, if an answer had that entry; otherwise None."""
        return self._lengths.get(entry_id)

    @property
    def last_entry_id(self) -> int:
        """The greatest entry id in any answer, confirmed or not; -1 when no answer had an entry."""
        return max(self._lengths, default=-1)

    @property
    def average_bytes(self) -> int:
        """Payload bytes of the ledger's average entry: the largest value that follows from an answer; 0 when none had an entry."""
        return max([length // (entry_id + 1) for entry_id, length in self._lengths.items()], default=0)

    def longest(self) -> int:
        """The greatest length in any answer; 0 when none had an entry."""
        return max(self._lengths.values(), default=0)

    def missing(self) -> str:
        """The bookies that are unknown, each with the reason, for an error message."""
        return ", ".join(f"{self.ensemble[position]} ({reason})" for position, reason in sorted(self._unknown.items()))

    def _record(self, position: int) -> None:
        self._waiting.pop(position, None)
        self._unknown.pop(position, None)
