"""Acknowledgements of a ledger whose entry ids the caller chooses: in any order, with gaps that hold back the entries behind them.

The tracker keeps the entries that each position has not acknowledged; everything else is derived from them. Ids do not show the order of
pushes here, so each pushed entry gets an order number, which grows with every push.
Source: BookKeeper `LedgerHandleAdv`, `PendingAddOp`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from triplicate.ledger.placement.ack_domains import AckDomains
from triplicate.ledger.schedule import is_endangered, write_set, write_sets

LAST_ENTRY_ID = 2**63 - 1
"""The greatest id that an entry's header can hold."""


class AdvWriteTracker:
    """The pushed entries of one ledger whose writer chooses entry ids. Its interface is that of `WriteTracker`, except `push`.

    Invariants: the last-add-confirmed never decreases, and never passes an id that was not pushed; it does not move between
    `begin_change` and `end_change`; an id is pushed once; an acknowledgement counts only for the present position of its bookie, only
    while that bookie is not suspended, and only for entries that the position was sent.

    Args:
        ensemble: bookie ids by position.
        write_quorum: copies per entry.
        ack_quorum: acknowledgements that confirm an entry.
    """

    __slots__ = (
        "_ack_quorum",
        "_last_order",
        "_left_short",
        "_pending",
        "_positions",
        "_size",
        "_suspended",
        "_unacked",
        "_write_quorum",
        "changing",
        "ensemble",
        "last_add_confirmed",
        "last_add_pushed",
    )

    def __init__(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int) -> None:
        assert len(ensemble) >= write_quorum >= ack_quorum >= 1, "the quorums must fit into the ensemble"
        assert len(set(ensemble)) == len(ensemble), "a bookie can hold one position only"
        self.ensemble = tuple(ensemble)
        self.last_add_confirmed = -1
        self.last_add_pushed = -1
        """The greatest id pushed; ids below it may be missing."""
        self.changing = False
        self._size = len(self.ensemble)
        self._write_quorum = write_quorum
        self._ack_quorum = ack_quorum
        self._suspended: dict[int, None] = {}
        # Positions by bookie, without the suspended ones, whose acknowledgements do not count.
        self._positions = {bookie_id: position for position, bookie_id in enumerate(self.ensemble)}
        self._last_order = -1
        # Entries that are pushed and not confirmed, with their order numbers, in that order.
        self._pending: dict[int, int] = {}
        # Entries that each position has not acknowledged, with order numbers, in the order of sending. Confirmed entries may be among
        # them, but not at a suspended position, where they would accumulate.
        self._unacked: list[OrderedDict[int, int]] = [OrderedDict() for _ in self.ensemble]
        self._left_short: dict[str, None] = {}

    def is_taken(self, entry_id: int) -> bool:
        """Whether the id was pushed before: it is pending or confirmed."""
        return entry_id <= self.last_add_confirmed or entry_id in self._pending

    def push(self, entry_id: int) -> None:
        """Record a new entry with this id, from 0 to `LAST_ENTRY_ID`, which must not be taken."""
        assert 0 <= entry_id <= LAST_ENTRY_ID, "an id must fit into an entry's header"
        assert not self.is_taken(entry_id), "an id is pushed once"
        self._last_order += 1
        self._pending[entry_id] = self._last_order
        self.last_add_pushed = max(self.last_add_pushed, entry_id)
        for position in write_sets(self._size, self._write_quorum)[entry_id % self._size]:
            self._unacked[position][entry_id] = self._last_order

    @property
    def is_held_back(self) -> bool:
        """Whether entry last-add-confirmed + 1 was not pushed: nothing more can be confirmed until it is."""
        return self.last_add_confirmed + 1 not in self._pending

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
        sent to the bookie.
        """
        position = self._positions.get(bookie_id)
        if position is not None:
            unacked = self._unacked[position]
            for entry_id in entry_ids:
                unacked.pop(entry_id, None)
        return self.acked_through(bookie_id)

    def acknowledge_next(self, bookie_id: str, entry_id: int) -> bool | None:
        """See `WriteTracker.acknowledge_next`. Here every case is an unusual one."""
        return None

    def advance(self) -> int:
        """Advance the last-add-confirmed over ids without a gap as far as their acknowledgements allow; return it."""
        while not self.changing and not self.is_held_back and self._has_ack_quorum(self.last_add_confirmed + 1):
            self.last_add_confirmed += 1
            del self._pending[self.last_add_confirmed]
            for position in self._suspended:
                if self._unacked[position].pop(self.last_add_confirmed, None) is not None:
                    self._left_short[self.ensemble[position]] = None
        return self.last_add_confirmed

    @property
    def left_short(self) -> tuple[str, ...]:
        """See `WriteTracker.left_short`."""
        return tuple(self._left_short)

    def order_of(self, entry_id: int) -> int:
        """The order number of a pending entry: greater than those of all entries pushed before it."""
        return self._pending[entry_id]

    def acked_through(self, bookie_id: str) -> int:
        """The bookie has acknowledged every entry that it was sent up to this order number; the last one for a bookie that takes none."""
        position = self._positions.get(bookie_id)
        if position is None or not self._unacked[position]:
            return self._last_order
        return next(iter(self._unacked[position].values())) - 1

    def suspend(self, bookie_id: str) -> None:
        """Send nothing more to a bookie that failed, and ignore its acknowledgements. Idempotent, and harmless for an unknown bookie."""
        position = self._positions.pop(bookie_id, None)
        if position is not None:
            self._suspended[position] = None
            self._note_left_short(position)
            self._unacked[position] = OrderedDict((e, order) for e, order in self._unacked[position].items() if e in self._pending)

    def resume(self, position: int) -> list[int]:
        """Let the bookie of a suspended position take entries again; return the ids that it must be sent, in the order of pushing.

        Entries that were confirmed without it stay missing there; for the others, its earlier acknowledgements are forgotten.
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

        The new bookies have acknowledged nothing; `pending_of` lists the entries that they must be sent.
        """
        assert self.changing, "the ensemble changes only between begin_change and end_change"
        assert len(ensemble) == self._size, "an ensemble keeps its size"
        assert len(set(ensemble)) == self._size, "an ensemble names no bookie twice"
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
        """Ids of the position's entries that are pushed and not confirmed, in the order of pushing."""
        return [entry_id for entry_id in self._pending if self.holds(position, entry_id)]

    def _note_left_short(self, position: int) -> None:
        if any(entry_id not in self._pending for entry_id in self._unacked[position]):
            self._left_short[self.ensemble[position]] = None

    def _restart(self, position: int) -> None:
        self._note_left_short(position)
        self._unacked[position] = OrderedDict((e, order) for e, order in self._pending.items() if self.holds(position, e))

    def _has_ack_quorum(self, entry_id: int) -> bool:
        """Whether an ack quorum of the present ensemble acknowledged this pending entry."""
        positions = write_set(entry_id, self._size, self._write_quorum)
        return sum(entry_id not in self._unacked[position] for position in positions) >= self._ack_quorum
