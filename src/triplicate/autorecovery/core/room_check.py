"""Whether the bookies that remain can hold every ledger after some bookies are decommissioned. Decided before anything is changed.

Each segment that names a leaving bookie needs another writable bookie in its place, outside its ensemble and by the rules of placement. An
open ledger also needs as many writable bookies as its ensemble has, or its writer could not replace a bookie or continue in a new ledger.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from triplicate.errors import NotEnoughBookies
from triplicate.ledger import LedgerMetadata, PlacementRules, RandomSource, rearrange_bookies, replace_bookies


@dataclass(frozen=True, slots=True)
class RefusedSegment:
    """A segment for which too few bookies would remain.

    Args:
        needed: writable bookies outside `kept` that it needs.
        there: writable bookies outside the ensemble that remain.
    """

    ledger_id: int
    first_entry_id: int
    kept: tuple[str, ...]
    """The bookies of the ensemble that stay."""
    needed: int
    there: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Shape:
    """The parts of a segment that the decision depends on, so that each is decided once."""

    ensemble: tuple[str, ...]
    write_quorum: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class _Shortage:
    needed: int
    there: int
    reason: str


class RoomCheck:
    """Judges ledgers one by one.

    Args:
        leaving: the bookies to decommission.
        remaining: the writable bookies that stay.
        rng: draws bookies; which ones makes no difference here, only whether there are any.
    """

    def __init__(self, leaving: Collection[str], remaining: Collection[str], rng: RandomSource) -> None:
        self._leaving = dict.fromkeys(leaving)
        self._remaining = sorted(set(remaining) - self._leaving.keys())
        self._rng = rng
        self._known: dict[_Shape, _Shortage | None] = {}

    def add(self, ledger_id: int, metadata: LedgerMetadata, rules: PlacementRules) -> list[RefusedSegment]:
        """The segments of a ledger for which too few bookies would remain.

        Args:
            rules: of placement for this ledger. Machines that leave still count as machines, so copies do not share the one that is left.
        """
        found: list[RefusedSegment] = []
        for index, segment in enumerate(metadata.segments):
            is_open = not metadata.is_closed and index == len(metadata.segments) - 1
            shape = _Shape(segment.ensemble, metadata.write_quorum, is_open)
            if shape not in self._known:
                self._known[shape] = self._shortage(shape, rules)
            lack = self._known[shape]
            if lack is not None:
                kept = tuple(name for name in segment.ensemble if name not in self._leaving)
                found.append(RefusedSegment(ledger_id, segment.first_entry_id, kept, lack.needed, lack.there, lack.reason))
        return found

    def _shortage(self, shape: _Shape, rules: PlacementRules) -> _Shortage | None:
        positions = [position for position, name in enumerate(shape.ensemble) if name in self._leaving]
        spare = [name for name in self._remaining if name not in shape.ensemble]
        size, count = len(shape.ensemble), len(self._remaining)
        if len(spare) < len(positions):
            return _Shortage(len(positions), len(spare), "too few writable bookies outside the ensemble remain")
        if shape.is_open and count < size:
            return _Shortage(size, count, f"the ledger is open with an ensemble of {size}, and {count} writable bookies remain")
        if not positions:
            return None
        try:
            changed = replace_bookies(shape.ensemble, positions, spare, self._rng, (), rules)
        except NotEnoughBookies:
            changed = shape.ensemble
        if any(name in self._leaving for name in changed):
            # The last segment of an open ledger is its writer's, and that changes no more than the positions of failed bookies.
            rearranged = None if shape.is_open else rearrange_bookies(shape.ensemble, positions, self._remaining, self._rng, rules)
            if rearranged is not None:
                return None
            reason = f"the rules of placement forbid the writable bookies that remain: {_machines(spare, rules)}"
            return _Shortage(len(positions), len(spare), reason)
        return None


def _machines(names: list[str], rules: PlacementRules) -> str:
    """The bookies by machine."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(rules.site(name).host, []).append(name)
    return "; ".join(f"{', '.join(members)} on {machine}" for machine, members in sorted(groups.items()))
