"""Trackers of writers whose entries are confirmed only by bookies in several fault domains.

They are classes of their own, so that writers without the rule do not even ask for it. Each keeps one bit per position (`AckDomains`) and
nothing per entry. Source: BookKeeper `PendingAddOp.writeComplete`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from triplicate.ledger.adv_tracker import AdvWriteTracker
from triplicate.ledger.placement.ack_domains import AckDomains
from triplicate.ledger.schedule import write_set, write_sets
from triplicate.ledger.write_tracker import WriteTracker


class DomainWriteTracker(WriteTracker):
    """A `WriteTracker` that confirms an entry when it and every entry before it have acknowledgements from an ack quorum of bookies, and
    these bookies are in enough fault domains.

    Args:
        domains: of the ensemble.
    """

    __slots__ = ("_domains",)

    def __init__(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int, domains: AckDomains, first_entry_id: int = 0) -> None:
        super().__init__(ensemble, write_quorum, ack_quorum, first_entry_id)
        assert len(domains.bits) == self._size, "every position has a domain"
        self._domains = domains

    @property
    def is_endangered(self) -> bool:
        """Whether some entries find no ack quorum, or too few domains, because of the suspended bookies."""
        return super().is_endangered or (bool(self._suspended) and self._domains.is_endangered(self._suspended, self._write_quorum))

    @property
    def waiting_for_domains(self) -> int:
        """Number of entries that an ack quorum has acknowledged, with all before them, and that wait for further domains."""
        if self.changing:
            return 0
        quorate = super()._confirmed_prefix()  # By watermarks; entries acknowledged out of order may follow.
        while quorate < self.last_add_pushed and super()._has_ack_quorum(quorate + 1):
            quorate += 1
        return quorate - self.last_add_confirmed

    def acknowledge_next(self, bookie_id: str, entry_id: int) -> bool | None:
        """See `WriteTracker.acknowledge_next`; True also needs enough domains."""
        position = self._positions.get(bookie_id)
        if position is None or self._striped or self._out_of_order:
            return None
        acked = self._acked
        if entry_id != acked[position] + 1 or entry_id > self.last_add_pushed:
            return None
        acked[position] = entry_id
        if entry_id <= self.last_add_confirmed:
            return False
        missing, found, bits = self._ack_quorum, 0, self._domains.bits
        for other, watermark in enumerate(acked):
            if watermark >= entry_id:
                missing -= 1
                found |= bits[other]
        return missing <= 0 and found.bit_count() >= self._domains.needed

    def limit_domains(self, absent: Collection[int]) -> None:
        """Go on with fewer domains where the bookies at these positions take no entries, and the others are in too few."""
        self._domains = self._domains.limited(absent, self._write_quorum)

    def replace(self, ensemble: Sequence[str], domains: AckDomains | None = None) -> list[int]:
        """See `WriteTracker.replace`. Without `domains` the new bookies are in none that counts."""
        changed = super().replace(ensemble)
        self._domains = domains if domains is not None else _without(self._domains, changed)
        return changed

    def _confirmed_prefix(self) -> int:
        """The last entry of the prefix in which every entry has its ack quorum and its domains.

        As in `WriteTracker`, a watermark of each residue class bounds its confirmed entries: the greatest that enough bookies in enough
        domains have reached.
        """
        if self._striped:
            size, confirmed = self._size, self.last_add_pushed
            for residue, positions in enumerate(write_sets(size, self._write_quorum)):
                first = max(self._watermark(positions), self.last_add_confirmed) + 1
                confirmed = min(confirmed, first + (residue - first) % size - 1)
        else:
            confirmed = max(self._watermark(range(self._size)), self.last_add_confirmed)
        if self._out_of_order:
            self._out_of_order = any(self._ahead)
            while confirmed < self.last_add_pushed and self._has_ack_quorum(confirmed + 1):
                confirmed += 1
        return confirmed

    def _watermark(self, positions: Sequence[int]) -> int:
        """The greatest watermark that an ack quorum of these positions has reached, in enough domains; -1 before the first entry."""
        acked, bits, missing, found = self._acked, self._domains.bits, self._ack_quorum, 0
        for position in sorted(positions, key=acked.__getitem__, reverse=True):
            missing -= 1
            found |= bits[position]
            if missing <= 0 and found.bit_count() >= self._domains.needed:
                return acked[position]
        return -1

    def _has_ack_quorum(self, entry_id: int) -> bool:
        return super()._has_ack_quorum(entry_id) and self._domains.are_spanned_by(self._acknowledging(entry_id))

    def _acknowledging(self, entry_id: int) -> Iterator[int]:
        """The positions whose bookies acknowledged this entry."""
        for position in write_set(entry_id, self._size, self._write_quorum):
            if entry_id <= self._acked[position] or entry_id in self._ahead[position]:
                yield position


class AdvDomainWriteTracker(AdvWriteTracker):
    """An `AdvWriteTracker` with the rule of `DomainWriteTracker`.

    Args:
        domains: of the ensemble.
    """

    __slots__ = ("_domains",)

    def __init__(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int, domains: AckDomains) -> None:
        super().__init__(ensemble, write_quorum, ack_quorum)
        assert len(domains.bits) == self._size, "every position has a domain"
        self._domains = domains

    @property
    def is_endangered(self) -> bool:
        """Whether some entries find no ack quorum, or too few domains, because of the suspended bookies."""
        return super().is_endangered or (bool(self._suspended) and self._domains.is_endangered(self._suspended, self._write_quorum))

    @property
    def waiting_for_domains(self) -> int:
        """Number of entries that an ack quorum has acknowledged, with all before them, and that wait for further domains."""
        waiting = 0
        if not self.changing:
            while (entry_id := self.last_add_confirmed + 1 + waiting) in self._pending and super()._has_ack_quorum(entry_id):
                waiting += 1
        return waiting

    def replace(self, ensemble: Sequence[str], domains: AckDomains | None = None) -> list[int]:
        """See `AdvWriteTracker.replace`. Without `domains` the new bookies are in none that counts."""
        changed = super().replace(ensemble)
        self._domains = domains if domains is not None else _without(self._domains, changed)
        return changed

    def _has_ack_quorum(self, entry_id: int) -> bool:
        positions = write_set(entry_id, self._size, self._write_quorum)
        return super()._has_ack_quorum(entry_id) and self._domains.are_spanned_by(
            position for position in positions if entry_id not in self._unacked[position]
        )


def _without(domains: AckDomains, positions: Sequence[int]) -> AckDomains:
    return AckDomains(domains.needed, tuple(0 if position in positions else bit for position, bit in enumerate(domains.bits)))
