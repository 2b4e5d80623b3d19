"""Who acknowledged which entry where the caller chooses the ids: in any order, with gaps that hold back what follows.

The facts are what each position still owes an acknowledgement for; everything else is derived from that: an entry that a position was
sent and does not owe is one that it acknowledged. What was sent when has a mark, a number that grows with every push, since ids say
nothing about order here.
Source: BookKeeper `LedgerHandleAdv`, `PendingAddOp`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from triplicate.ledger.schedule import is_endangered, write_set, write_sets

LAST_ENTRY_ID = 2**63 - 1
"""The greatest id that an entry's header can hold."""


class AdvWriteTracker:
    """The state of one ledger whose writer chooses entry ids; in use like `WriteTracker`, but for `push`.

    What must always hold: the last-add-confirmed never falls and never passes an id that was not pushed; it stands still between
    `begin_change` and `end_change`; an id is pushed once; an acknowledgement counts only for the position at which its bookie stands
    now, only while that bookie is not absent, and only for what that position was sent.

    Args:
        ensemble: bookie ids by position.
        write_quorum: copies per entry.
        ack_quorum: acknowledgements that confirm an entry.
    """

    __slots__ = (
        "_absent",
        "_ack_quorum",
        "_last_mark",
        "_owed",
        "_pending",
        "_positions",
        "_size",
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
        """The greatest id so far; ids below it may be missing."""
        self.changing = False
        self._size = len(self.ensemble)
        self._write_quorum = write_quorum
        self._ack_quorum = ack_quorum
        self._absent: dict[int, None] = {}
        # Those who may acknowledge: bookies that are absent are not among them.
        self._positions = {bookie_id: position for position, bookie_id in enumerate(self.ensemble)}
        self._last_mark = -1
        # Pushed and not confirmed, with their marks, in the order of pushing.
        self._pending: dict[int, int] = {}
        # What each position has still to acknowledge, with marks, in the order of sending; confirmed entries may be among it, but not
        # where the bookie is absent, since it may stay so for long.
        self._owed: list[OrderedDict[int, int]] = [OrderedDict() for _ in self.ensemble]

    def is_taken(self, entry_id: int) -> bool:
        """Whether the id was pushed before: it is pending, or confirmed."""
        return entry_id <= self.last_add_confirmed or entry_id in self._pending

    def push(self, entry_id: int) -> None:
        """Note a new entry of this id, from 0 to `LAST_ENTRY_ID`, that is not taken."""
        assert 0 <= entry_id <= LAST_ENTRY_ID, "an id must fit into an entry's header"
        assert not self.is_taken(entry_id), "an id is pushed once"
        self._last_mark += 1
        self._pending[entry_id] = self._last_mark
        self.last_add_pushed = max(self.last_add_pushed, entry_id)
        for position in write_sets(self._size, self._write_quorum)[entry_id % self._size]:
            self._owed[position][entry_id] = self._last_mark

    @property
    def is_held_back(self) -> bool:
        """Whether the entry behind the last-add-confirmed was not pushed: until it is, nothing more can be confirmed."""
        return self.last_add_confirmed + 1 not in self._pending

    def position_of(self, bookie_id: str) -> int | None:
        """The position where this bookie takes entries now, or None when it is absent, was replaced, or never belonged here."""
        return self._positions.get(bookie_id)

    @property
    def absent(self) -> tuple[int, ...]:
        """Positions whose bookie failed and is neither replaced nor back, ascending."""
        return tuple(sorted(self._absent))

    @property
    def is_endangered(self) -> bool:
        """Whether so many bookies are absent that some entries find no ack quorum."""
        return bool(self._absent) and is_endangered(self._absent, self._size, self._write_quorum, self._ack_quorum)

    def acknowledge(self, bookie_id: str, entry_ids: Sequence[int]) -> int:
        """Note that a bookie stored these entries durably, and return what `reach_of` says of it now.

        Acknowledgements of absent and replaced bookies, repeated ones, and ones for entries that were never sent there are ignored.
        """
        position = self._positions.get(bookie_id)
        if position is not None:
            owed = self._owed[position]
            for entry_id in entry_ids:
                owed.pop(entry_id, None)
        return self.reach_of(bookie_id)

    def acknowledge_next(self, bookie_id: str, entry_id: int) -> bool | None:
        """See `WriteTracker.acknowledge_next`. Here every entry is unusual."""
        return None

    def advance(self) -> int:
        """Move the last-add-confirmed over ids without a gap as far as their acknowledgements allow, and return it."""
        while not self.changing and not self.is_held_back and self._has_ack_quorum(self.last_add_confirmed + 1):
            self.last_add_confirmed += 1
            del self._pending[self.last_add_confirmed]
            for position in self._absent:
                self._owed[position].pop(self.last_add_confirmed, None)
        return self.last_add_confirmed

    def mark_of(self, entry_id: int) -> int:
        """The mark of a pending entry: greater than those of all entries pushed before it."""
        return self._pending[entry_id]

    def reach_of(self, bookie_id: str) -> int:
        """The bookie has acknowledged everything that it was sent up to this mark; for one that takes no entries, the last mark."""
        position = self._positions.get(bookie_id)
        if position is None or not self._owed[position]:
            return self._last_mark
        return next(iter(self._owed[position].values())) - 1

    def withdraw(self, bookie_id: str) -> None:
        """The bookie failed: it is sent nothing more, and what it still says does not count. Harmless when it takes no entries anyhow."""
        position = self._positions.pop(bookie_id, None)
        if position is not None:
            self._absent[position] = None
            self._owed[position] = OrderedDict((e, mark) for e, mark in self._owed[position].items() if e in self._pending)

    def readmit(self, position: int) -> list[int]:
        """The bookie of an absent position takes entries again; return the ids that it must be sent, in the order of their marks.

        Entries that were confirmed without it stay missing there, and of the others nothing that it said before is believed.
        """
        del self._absent[position]
        self._positions[self.ensemble[position]] = position
        self._start_again(position)
        return self.pending_of(position)

    def begin_change(self) -> None:
        """From now on nothing is confirmed, because a new segment will start right behind the last-add-confirmed."""
        assert not self.changing, "one ensemble change at a time"
        self.changing = True

    def replace(self, ensemble: Sequence[str]) -> list[int]:
        """Take over a new ensemble whose segment starts at last-add-confirmed + 1; return the positions that changed.

        The bookies at those positions owe everything pending; `pending_of` says what they must be sent.
        """
        assert self.changing, "the ensemble changes only between begin_change and end_change"
        assert len(ensemble) == self._size, "an ensemble keeps its size"
        assert len(set(ensemble)) == self._size, "an ensemble names no bookie twice"
        changed = [position for position, bookie_id in enumerate(ensemble) if bookie_id != self.ensemble[position]]
        for position in changed:
            self._absent.pop(position, None)
            self._start_again(position)
        self.ensemble = tuple(ensemble)
        self._positions = {bookie_id: position for position, bookie_id in enumerate(ensemble) if position not in self._absent}
        return changed

    def end_change(self) -> None:
        """The change is durable in metadata and the entries are on their way: confirm again."""
        assert self.changing, "there is no ensemble change to end"
        self.changing = False

    def holds(self, position: int, entry_id: int) -> bool:
        """Whether the entry belongs to the position."""
        return (position - entry_id) % self._size < self._write_quorum

    def pending_of(self, position: int) -> list[int]:
        """Ids of the position's entries that are pushed and not confirmed, in the order of their marks."""
        return [entry_id for entry_id in self._pending if self.holds(position, entry_id)]

    def _start_again(self, position: int) -> None:
        self._owed[position] = OrderedDict((e, mark) for e, mark in self._pending.items() if self.holds(position, e))

    def _has_ack_quorum(self, entry_id: int) -> bool:
        """Whether enough bookies of the present ensemble acknowledged this pending entry."""
        positions = write_set(entry_id, self._size, self._write_quorum)
        return sum(entry_id not in self._owed[position] for position in positions) >= self._ack_quorum
