"""Acknowledgements of one ledger's entries, and the confirmed prefix that follows from them.

The tracker keeps only the acknowledgements: one watermark and a small set of out-of-order ids per position. The last-add-confirmed is
derived from them. The tracker is arithmetic on the hot path: each call handles a whole run of them, and no object is made per entry.
Source: BookKeeper `LedgerHandle`, `PendingAddOp`, `RoundRobinDistributionSchedule`.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.ledger.placement.ack_domains import AckDomains
from triplicate.ledger.schedule import is_endangered


class WriteTracker:
    """The state of one ledger's pushed entries.

    Entry e belongs to the positions (e + i) mod E, i = 0 … write quorum - 1. An entry is confirmed when it and every entry before
    it have acknowledgements from an ack quorum of the bookies in the present ensemble.

    A bookie that fails is suspended until another bookie replaces it (`replace`) or it returns (`resume`). Its earlier acknowledgements
    still count, because those entries are on its disk.

    Invariants: the last-add-confirmed never decreases; it does not move between `begin_change` and `end_change`; an acknowledgement
    counts only for the present position of its bookie, and not while that bookie is suspended, since it is then sent nothing.

    Args:
        ensemble: bookie ids by position.
        write_quorum: copies per entry.
        ack_quorum: acknowledgements that confirm an entry.
        first_entry_id: id of the first entry that will be pushed; everything before it counts as confirmed.
    """

    __slots__ = (
        "_ack_quorum",
        "_acked",
        "_ahead",
        "_left_short",
        "_out_of_order",
        "_positions",
        "_rank",
        "_size",
        "_striped",
        "_suspended",
        "_write_quorum",
        "changing",
        "ensemble",
        "last_add_confirmed",
        "last_add_pushed",
    )

    def __init__(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int, first_entry_id: int = 0) -> None:
        assert len(ensemble) >= write_quorum >= ack_quorum >= 1, "the quorums must fit into the ensemble"
        assert len(set(ensemble)) == len(ensemble), "a bookie can hold one position only"
        self.ensemble = tuple(ensemble)
        self.last_add_confirmed = first_entry_id - 1
        self.last_add_pushed = first_entry_id - 1
        self.changing = False
        self._size = len(self.ensemble)
        self._write_quorum = write_quorum
        self._ack_quorum = ack_quorum
        self._rank = write_quorum - ack_quorum
        """Index of the confirmed watermark among an entry's, ascending: with Qw = 3, Qa = 2 and 4, 7, 9 it is 7, at 3 - 2 = 1."""
        self._striped = write_quorum < self._size
        self._suspended: dict[int, None] = {}
        # Positions by bookie, without the suspended ones, whose acknowledgements do not count.
        self._positions = {bookie_id: position for position, bookie_id in enumerate(self.ensemble)}
        # Each position has acknowledged every entry that it was sent up to its watermark, and beyond it the ids in its set `_ahead`.
        # A bookie that took its position later is sent the entries that were unconfirmed at that moment, and all that follow.
        self._acked = [first_entry_id - 1] * self._size
        self._ahead: list[set[int]] = [set() for _ in self.ensemble]
        self._out_of_order = False
        """Whether any set in `_ahead` may be non-empty; avoids a look at each of them in the usual case."""
        self._left_short: dict[str, None] = {}

    def push(self, count: int = 1) -> int:
        """Number `count` new entries and return the id of the last."""
        self.last_add_pushed += count
        return self.last_add_pushed

    def position_of(self, bookie_id: str) -> int | None:
        """The position at which this bookie takes entries; None if it is suspended, was replaced, or never belonged to the ensemble."""
        return self._positions.get(bookie_id)

    @property
    def suspended(self) -> tuple[int, ...]:
        """Positions whose bookie failed and was neither replaced nor resumed, ascending."""
        return tuple(sorted(self._suspended))

    @property
    def is_endangered(self) -> bool:
        """Whether some entries find no ack quorum because of the suspended bookies."""
        return bool(self._suspended) and is_endangered(self._suspended, self._size, self._write_quorum, self._ack_quorum)

    def acknowledge(self, bookie_id: str, entry_ids: Sequence[int]) -> int:
        """Record that a bookie stored these entries durably; return its `acked_through`.

        Acknowledgements are ignored if they are repeated, come from a suspended or replaced bookie, or concern entries that were never
        sent to the bookie: they come from peers and prove nothing.
        """
        position = self._positions.get(bookie_id)
        if position is None:
            return self.last_add_pushed
        watermark, count = self._acked[position], len(entry_ids)
        if not count:
            return watermark
        if (
            not self._striped
            and entry_ids[0] == watermark + 1
            and watermark + count <= self.last_add_pushed
            and not self._ahead[position]
            and (count == 1 or tuple(entry_ids) == tuple(range(watermark + 1, watermark + 1 + count)))
        ):
            self._acked[position] = watermark + count
            return watermark + count
        self._acknowledge_each(position, entry_ids)
        return self._acked[position]

    def acknowledge_next(self, bookie_id: str, entry_id: int) -> bool | None:
        """`acknowledge` for one entry in the usual case: every bookie holds every entry and acknowledges them in order.

        Returns:
            True if the entry is unconfirmed and has an ack quorum, so that `advance` is due; False if it is not due. None in any unusual
            case: nothing was recorded, and the caller must use `acknowledge`.
        """
        position = self._positions.get(bookie_id)
        if position is None or self._striped or self._out_of_order:
            return None
        acked = self._acked
        if entry_id != acked[position] + 1 or entry_id > self.last_add_pushed:
            return None
        acked[position] = entry_id
        if entry_id <= self.last_add_confirmed:
            return False
        missing = self._ack_quorum
        for watermark in acked:
            if watermark >= entry_id:
                missing -= 1
        return missing <= 0

    def advance(self) -> int:
        """Advance the last-add-confirmed as far as the acknowledgements allow; return it."""
        if self.changing:
            return self.last_add_confirmed
        confirmed = self._confirmed_prefix()
        assert self.last_add_confirmed <= confirmed <= self.last_add_pushed, "the confirmed prefix may only grow"
        self.last_add_confirmed = confirmed
        return confirmed

    def acked_through(self, bookie_id: str) -> int:
        """The bookie has acknowledged every entry that it was sent up to this id; the last pushed id for a bookie that takes no entries."""
        position = self._positions.get(bookie_id)
        return self.last_add_pushed if position is None else self._acked[position]

    @property
    def has_all_copies(self) -> bool:
        """Whether every bookie that the metadata name for an entry has acknowledged it, those of earlier ensembles included."""
        return not self._left_short and not self._suspended and not self.positions_without_copies()

    @property
    def left_short(self) -> tuple[str, ...]:
        """The bookies that the metadata name for a confirmed entry that they have not acknowledged, and that they are not sent any more."""
        suspended = [self.ensemble[at] for at in self._suspended if self._lacks_entries(at, self.last_add_confirmed)]
        return tuple(dict.fromkeys([*self._left_short, *suspended]))

    def positions_without_copies(self) -> list[int]:
        """The positions that have not acknowledged every entry that they should hold."""
        return [position for position in range(self._size) if self._lacks_entries(position, self.last_add_pushed)]

    def _lacks_entries(self, position: int, last: int) -> bool:
        """Whether a position has not acknowledged all of its entries up to `last`, the last of which lies less than a round back."""
        last_held = next(entry_id for entry_id in range(last, last - self._size, -1) if self.holds(position, entry_id))
        return self._acked[position] < last_held

    def order_of(self, entry_id: int) -> int:
        """A number that orders entries as they were pushed: here, the id itself. See `AdvWriteTracker.order_of`."""
        return entry_id

    def suspend(self, bookie_id: str) -> None:
        """Send nothing more to a bookie that failed, and ignore its acknowledgements. Idempotent, and harmless for an unknown bookie."""
        position = self._positions.pop(bookie_id, None)
        if position is not None:
            self._suspended[position] = None

    def resume(self, position: int) -> list[int]:
        """Let the bookie of a suspended position take entries again; return the ids that it must be sent.

        It begins at last-add-confirmed + 1. Entries that were confirmed without it stay missing there; for the others, its earlier
        acknowledgements are forgotten.
        """
        del self._suspended[position]
        self._positions[self.ensemble[position]] = position
        self._restart(position)
        return self.pending_of(position)

    def begin_change(self) -> None:
        """Confirm nothing until `end_change`, because a new segment will begin at last-add-confirmed + 1."""
        assert not self.changing, "one ensemble change at a time"
        self.changing = True

    def replace(self, ensemble: Sequence[str], domains: AckDomains | None = None) -> list[int]:
        """Install a new ensemble, whose segment begins at last-add-confirmed + 1; return the positions that changed.

        The acknowledgements at those positions are forgotten; `pending_of` lists the entries that their new bookies must be sent.
        """
        assert self.changing, "the ensemble changes only between begin_change and end_change"
        assert len(ensemble) == len(set(ensemble)) == self._size, "an ensemble keeps its size and names no bookie twice"
        changed = [position for position, bookie_id in enumerate(ensemble) if bookie_id != self.ensemble[position]]
        for position in changed:
            self._suspended.pop(position, None)
            self._restart(position)
        self.ensemble = tuple(ensemble)
        self._positions = {bookie_id: position for position, bookie_id in enumerate(ensemble) if position not in self._suspended}
        return changed

    def end_change(self) -> None:
        """Allow confirmation again: the change is durable in the metadata, or it was abandoned."""
        assert self.changing, "there is no ensemble change to end"
        self.changing = False

    def holds(self, position: int, entry_id: int) -> bool:
        """Whether the entry belongs to the position."""
        return (position - entry_id) % self._size < self._write_quorum

    def pending_of(self, position: int) -> list[int]:
        """Ids of the position's entries that are pushed and not confirmed, ascending."""
        return [e for e in range(self.last_add_confirmed + 1, self.last_add_pushed + 1) if self.holds(position, e)]

    def _restart(self, position: int) -> None:
        if self._lacks_entries(position, self.last_add_confirmed):
            self._left_short[self.ensemble[position]] = None
        self._acked[position] = self.last_add_confirmed
        self._ahead[position].clear()

    def _acknowledge_each(self, position: int, entry_ids: Sequence[int]) -> None:
        """The general case: stripes, gaps, repetitions, reordering."""
        watermark = self._acked[position]
        ahead = self._ahead[position]
        expected = self._next_of(position, watermark)
        for entry_id in entry_ids:
            if entry_id == expected and entry_id <= self.last_add_pushed:
                watermark = entry_id
                expected = self._next_of(position, watermark)
                while expected in ahead:
                    ahead.discard(expected)
                    watermark = expected
                    expected = self._next_of(position, watermark)
            elif expected < entry_id <= self.last_add_pushed and self.holds(position, entry_id):
                ahead.add(entry_id)
                self._out_of_order = True
        self._acked[position] = watermark

    def _next_of(self, position: int, entry_id: int) -> int:
        """The first entry after `entry_id` that belongs to the position."""
        candidate = entry_id + 1
        distance = (position - candidate) % self._size
        return candidate if distance < self._write_quorum else candidate + distance - self._write_quorum + 1

    def _confirmed_prefix(self) -> int:
        """The last entry of the prefix in which every entry has its ack quorum.

        Entries with the same remainder modulo the ensemble size share their positions. The ack-quorum-th greatest watermark of those
        positions bounds the confirmed entries of that residue class. The first entry beyond its bound, over all classes, ends the
        prefix. Only then the out-of-order acknowledgements are examined, entry by entry.
        """
        if self._striped:
            size, quorum = self._size, self._write_quorum
            confirmed = self.last_add_pushed
            for residue in range(size):
                watermark = sorted(self._acked[(residue + i) % size] for i in range(quorum))[self._rank]
                first = max(watermark, self.last_add_confirmed) + 1
                confirmed = min(confirmed, first + (residue - first) % size - 1)
        else:
            confirmed = sorted(self._acked)[self._rank]
            if confirmed < self.last_add_confirmed:
                confirmed = self.last_add_confirmed
        if self._out_of_order:
            self._out_of_order = any(self._ahead)
            while confirmed < self.last_add_pushed and self._has_ack_quorum(confirmed + 1):
                confirmed += 1
        return confirmed

    def _has_ack_quorum(self, entry_id: int) -> bool:
        """Whether enough bookies of the present ensemble acknowledged this entry."""
        positions = [(entry_id + i) % self._size for i in range(self._write_quorum)]
        return sum(entry_id <= self._acked[position] or entry_id in self._ahead[position] for position in positions) >= self._ack_quorum
