"""The sets of unsynced changes that a power cut may keep: enumerated up to a bound, drawn at random beyond it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from tests.crash.medium import Change, NameChange, Write

WHOLE_SETS_MAX = 4
"""Up to this number of unsynced changes, every subset is tried."""


@dataclass(frozen=True, slots=True)
class Cut:
    """`kind` is ``kept`` (all changes, as after a kill), ``lost`` (none), ``order`` (some whole changes) or ``torn``."""

    kind: str
    kept: tuple[int, ...]
    torn: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(change, its sectors that reached the disk)."""


@dataclass(slots=True)
class Bound:
    """How many cuts of one moment are tried. A draw with a fixed seed replaces the others.

    Args:
        orders, tears: most of each kind.
    """

    orders: int
    tears: int
    left_out: int = field(default=0)
    """Cuts of the lists below that were not tried so far."""

    def of(self, cuts: list[Cut], most: int, chance: random.Random) -> list[Cut]:
        if len(cuts) <= most:
            return cuts
        self.left_out += len(cuts) - most
        return [cuts[index] for index in sorted(chance.sample(range(len(cuts)), most))]


def cuts_of(pending: Mapping[int, Change], bound: Bound, seed: int) -> Iterator[Cut]:
    """Every result of a power cut on these unsynced changes; the first keeps none of them, the last all."""
    numbers = tuple(pending)
    chance = random.Random(seed)
    if numbers:
        yield Cut("lost", ())
        yield from bound.of(_orders(pending), bound.orders, chance)
        yield from bound.of(_tears(pending), bound.tears, chance)
    yield Cut("kept", numbers)


def _orders(pending: Mapping[int, Change]) -> list[Cut]:
    numbers = tuple(pending)
    sets: dict[tuple[int, ...], None] = {}
    if len(numbers) <= WHOLE_SETS_MAX:
        for size in range(1, len(numbers)):
            sets.update(dict.fromkeys(combinations(numbers, size)))
    for number in numbers:
        sets[tuple(other for other in numbers if other != number)] = None
        sets[(number,)] = None
    for length in range(1, len(numbers)):
        sets[numbers[:length]] = None
    places = [change.directory if isinstance(change, NameChange) else change.file for change in pending.values()]
    for place in dict.fromkeys(places):
        mine = tuple(number for number, other in zip(numbers, places, strict=True) if other == place)
        sets[mine] = None
        sets[tuple(number for number in numbers if number not in mine)] = None
    sets.pop((), None)
    sets.pop(numbers, None)
    return [Cut("order", kept) for kept in sets]


def _tears(pending: Mapping[int, Change]) -> list[Cut]:
    """The newest write of each file torn at every sector, with earlier changes kept or lost, and with its sectors out of order."""
    numbers = tuple(pending)
    found: list[Cut] = []
    newest = {change.file: number for number, change in pending.items() if isinstance(change, Write)}
    for number in newest.values():
        change = pending[number]
        assert isinstance(change, Write)
        sectors = tuple(range(change.sectors()))
        if len(sectors) < 2:
            continue
        before = tuple(other for other in numbers if other <= number)
        parts = [sectors[:length] for length in sectors[1:]] + [sectors[start:] for start in sectors[1:]]
        parts += [sectors[:hole] + sectors[hole + 1 :] for hole in sectors[1:-1]]
        found += [Cut("torn", before, ((number, part),)) for part in dict.fromkeys(parts)]
        found += [Cut("torn", (number,), ((number, sectors[:length]),)) for length in sectors[1:] if len(before) > 1]
    return found
