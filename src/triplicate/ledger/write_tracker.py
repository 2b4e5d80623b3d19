"""Who acknowledged which entry, and how far the confirmed prefix therefore reaches.

The tracker keeps only what was said (one reach and a small set of stragglers per position) and derives the last-add-confirmed
from it, so there is no flag that could disagree with the facts. It is arithmetic on the hot path: calls take whole runs of
acknowledgements, and no object is made per entry.
Source: BookKeeper `LedgerHandle`, `PendingAddOp`, `RoundRobinDistributionSchedule`.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.ledger.schedule import is_endangered


class WriteTracker:
    """The state of one ledger's pushed entries.

    Entry e belongs to the positions (e + i) mod E, i = 0 … write quorum - 1. An entry is confirmed when it and every entry before
    it have the acknowledgements of an ack quorum of bookies that stand in the present ensemble.

    A bookie that fails is absent (`withdraw`) until another takes its place (`replace`) or it comes back (`readmit`). What it acknowledged
    before is on its disk and goes on counting.

    What must always hold: the last-add-confirmed never falls; it stands still between `begin_change` and `end_change`; an
    acknowledgement counts only for the position at which its bookie stands now, and not while that bookie is absent, since it is
    then sent nothing.

    Args:
        ensemble: bookie ids by position.
        write_quorum: copies per entry.
        ack_quorum: acknowledgements that confirm an entry.
        first_entry_id: id of the first entry that will be pushed; everything before it counts as confirmed.
    """

    __slots__ = (
        "_absent",
        "_ack_quorum",
        "_ahead",
        "_positions",
        "_rank",
        "_reaches",
        "_size",
        "_stragglers",
        "_striped",
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
        """In the ascending reaches of an entry's positions, the place of the one up to which an ack quorum acknowledged."""
        self._striped = write_quorum < self._size
        self._absent: dict[int, None] = {}
        # Those who may acknowledge: bookies that are absent are not among them.
        self._positions = {bookie_id: position for position, bookie_id in enumerate(self.ensemble)}
        # Of the entries that a position was sent, it has acknowledged all up to its reach, and beyond it those in its set of stragglers.
        # A position that a bookie took later, or again, is sent what was not confirmed at that moment and what came after.
        self._reaches = [first_entry_id - 1] * self._size
        self._ahead: list[set[int]] = [set() for _ in self.ensemble]
        self._stragglers = False
        """Whether there may be stragglers anywhere; kept so that nobody looks at all the sets while there never were any."""

    def push(self, count: int = 1) -> int:
        """Number `count` new entries and return the id of the last."""
        self.last_add_pushed += count
        return self.last_add_pushed

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

        Acknowledgements of absent and replaced bookies, repeated ones, and ones for entries that were never sent there are ignored: they
        come from peers and prove nothing.
        """
        position = self._positions.get(bookie_id)
        if position is None:
            return self.last_add_pushed
        reach, count = self._reaches[position], len(entry_ids)
        if not count:
            return reach
        if (
            not self._striped
            and entry_ids[0] == reach + 1
            and reach + count <= self.last_add_pushed
            and not self._ahead[position]
            and (count == 1 or tuple(entry_ids) == tuple(range(reach + 1, reach + 1 + count)))
        ):
            self._reaches[position] = reach + count
            return reach + count
        self._acknowledge_each(position, entry_ids)
        return self._reaches[position]

    def acknowledge_next(self, bookie_id: str, entry_id: int) -> bool | None:
        """As `acknowledge` for one entry, where nothing is unusual: every bookie holds every entry, and acknowledges them in turn.

        Returns:
            Whether the entry has an ack quorum and is not confirmed, so that `advance` is due. None when it is unusual; nothing was
            noted then, and it is for `acknowledge`.
        """
        position = self._positions.get(bookie_id)
        if position is None or self._striped or self._stragglers:
            return None
        reaches = self._reaches
        if entry_id != reaches[position] + 1 or entry_id > self.last_add_pushed:
            return None
        reaches[position] = entry_id
        if entry_id <= self.last_add_confirmed:
            return False
        missing = self._ack_quorum
        for reach in reaches:
            if reach >= entry_id:
                missing -= 1
        return missing <= 0

    def advance(self) -> int:
        """Move the last-add-confirmed as far as the acknowledgements allow, and return it."""
        if self.changing:
            return self.last_add_confirmed
        confirmed = self._confirmed_prefix()
        assert self.last_add_confirmed <= confirmed <= self.last_add_pushed, "the confirmed prefix may only grow"
        self.last_add_confirmed = confirmed
        return confirmed

    def reach_of(self, bookie_id: str) -> int:
        """The bookie has acknowledged every entry that it was sent up to this id; for one that takes none, the last pushed id."""
        position = self._positions.get(bookie_id)
        return self.last_add_pushed if position is None else self._reaches[position]

    @property
    def has_all_copies(self) -> bool:
        """Whether every position has acknowledged every entry that it should hold, so that nothing lacks a copy."""
        if self._absent:
            return False
        last, size = self.last_add_pushed, self._size
        for position, reach in enumerate(self._reaches):
            # The last entry whose write set holds this position lies less than a round of the ensemble back.
            own = next(entry_id for entry_id in range(last, last - size, -1) if (position - entry_id) % size < self._write_quorum)
            if reach < own:
                return False
        return True

    def mark_of(self, entry_id: int) -> int:
        """What orders entries as they were pushed: here, the id itself. See `AdvWriteTracker.mark_of`."""
        return entry_id

    def withdraw(self, bookie_id: str) -> None:
        """The bookie failed: it is sent nothing more, and what it still says does not count. Harmless when it takes no entries anyhow."""
        position = self._positions.pop(bookie_id, None)
        if position is not None:
            self._absent[position] = None

    def readmit(self, position: int) -> list[int]:
        """The bookie of an absent position takes entries again; return the ids that it must be sent.

        It begins at last-add-confirmed + 1: entries that were confirmed without it stay missing there, and of the others nothing that
        it said before is believed.
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

        What the bookies at those positions acknowledged is forgotten; `pending_of` says what the new ones must be sent.
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
        """Ids of the position's entries that are pushed and not confirmed, ascending."""
        return [e for e in range(self.last_add_confirmed + 1, self.last_add_pushed + 1) if self.holds(position, e)]

    def _start_again(self, position: int) -> None:
        self._reaches[position] = self.last_add_confirmed
        self._ahead[position].clear()

    def _acknowledge_each(self, position: int, entry_ids: Sequence[int]) -> None:
        """The general way: stripes, gaps, repetitions, reordering."""
        reach = self._reaches[position]
        ahead = self._ahead[position]
        expected = self._next_of(position, reach)
        for entry_id in entry_ids:
            if entry_id == expected and entry_id <= self.last_add_pushed:
                reach = entry_id
                expected = self._next_of(position, reach)
                while expected in ahead:
                    ahead.discard(expected)
                    reach = expected
                    expected = self._next_of(position, reach)
            elif expected < entry_id <= self.last_add_pushed and self.holds(position, entry_id):
                ahead.add(entry_id)
                self._stragglers = True
        self._reaches[position] = reach

    def _next_of(self, position: int, entry_id: int) -> int:
        """The first entry after `entry_id` that belongs to the position."""
        candidate = entry_id + 1
        distance = (position - candidate) % self._size
        return candidate if distance < self._write_quorum else candidate + distance - self._write_quorum + 1

    def _confirmed_prefix(self) -> int:
        """How far every entry has its ack quorum.

        Entries with the same remainder modulo the ensemble size share their positions. The ack-quorum-th greatest reach of those
        positions is how far that residue class is confirmed by reaches alone; the first entry beyond it, over all classes, is
        where the prefix ends. Only then stragglers are looked at, entry by entry.
        """
        if self._striped:
            size, quorum = self._size, self._write_quorum
            confirmed = self.last_add_pushed
            for residue in range(size):
                reach = sorted(self._reaches[(residue + i) % size] for i in range(quorum))[self._rank]
                first = max(reach, self.last_add_confirmed) + 1
                confirmed = min(confirmed, first + (residue - first) % size - 1)
        else:
            confirmed = sorted(self._reaches)[self._rank]
            if confirmed < self.last_add_confirmed:
                confirmed = self.last_add_confirmed
        if self._stragglers:
            self._stragglers = any(self._ahead)
            while confirmed < self.last_add_pushed and self._has_ack_quorum(confirmed + 1):
                confirmed += 1
        return confirmed

    def _has_ack_quorum(self, entry_id: int) -> bool:
        """Whether enough bookies of the present ensemble acknowledged this entry."""
        count = 0
        for i in range(self._write_quorum):
            position = (entry_id + i) % self._size
            if entry_id <= self._reaches[position] or entry_id in self._ahead[position]:
                count += 1
        return count >= self._ack_quorum
