"""Choosing bookies for ensembles: any distinct writable ones, uniformly at random.

Names are sorted before the draw, so one seed gives one choice in any order of the listing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from triplicate.errors import ArgumentError, NotEnoughBookies


class RandomSource(Protocol):
    """The one method of `random.Random` that placement needs."""

    def sample(self, population: Sequence[str], k: int) -> list[str]:
        """`k` distinct members of `population` in random order."""


def choose_ensemble(writable: Iterable[str], size: int, rng: RandomSource, avoid: Collection[str] = ()) -> tuple[str, ...]:
    """An ensemble for a new ledger.

    Args:
        writable: ids of the bookies that accept writes.
        size: ensemble size.
        rng: the node's random stream for placement.
        avoid: bookies that recently failed; chosen only when there are too few others.

    Raises:
        NotEnoughBookies: fewer writable bookies than `size`.
    """
    if size < 1:
        raise ArgumentError(f"ensemble_size is {size}; it must be at least 1")
    names = sorted(set(writable))
    if len(names) < size:
        raise NotEnoughBookies(
            f"an ensemble of {size} needs {size} writable bookies, there are {len(names)} ({_listed(names)}); "
            "start more bookies or create the ledger with a smaller ensemble_size and write_quorum"
        )
    return tuple(_draw(names, size, rng, avoid))


def replace_bookies(
    ensemble: Sequence[str], failed: Collection[int], writable: Iterable[str], rng: RandomSource, avoid: Collection[str] = ()
) -> tuple[str, ...]:
    """The ensemble after a change.

    Each failed position gets a bookie that is neither in the ensemble nor among the failed ones. Where there are too few of
    those, the lowest positions are replaced and the others stay as they are; the writer continues as long as its quorum holds.

    Args:
        ensemble: bookie ids by position.
        failed: positions to replace.
        writable: ids of the bookies that accept writes.
        avoid: bookies that recently failed elsewhere; chosen only when there are too few others.

    Raises:
        NotEnoughBookies: not even one position could be replaced.
    """
    positions = sorted(set(failed))
    if not positions:
        return tuple(ensemble)
    if positions[0] < 0 or positions[-1] >= len(ensemble):
        raise ArgumentError(f"positions {positions} are not all inside an ensemble of {len(ensemble)}")
    present = set(ensemble)
    spare = sorted(set(writable) - present)
    if not spare:
        gone = [ensemble[position] for position in positions]
        raise NotEnoughBookies(
            f"{_listed(gone)} failed and {len(positions)} writable bookie(s) outside the ensemble ({_listed(ensemble)}) "
            f"are needed to replace them, there are 0; writable: {_listed(sorted(set(writable)))}; start more bookies"
        )
    chosen = _draw(spare, min(len(spare), len(positions)), rng, avoid)
    changed = list(ensemble)
    for position, bookie_id in zip(positions, chosen, strict=False):
        changed[position] = bookie_id
    return tuple(changed)


def _draw(names: list[str], count: int, rng: RandomSource, avoid: Collection[str]) -> list[str]:
    preferred = [name for name in names if name not in avoid]
    if len(preferred) >= count:
        return rng.sample(preferred, count)
    rest = [name for name in names if name in avoid]
    return rng.sample(preferred, len(preferred)) + rng.sample(rest, count - len(preferred))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"
