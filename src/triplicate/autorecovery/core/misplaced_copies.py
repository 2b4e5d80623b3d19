"""Which copies of a ledger move to other bookies so that its ensembles keep the rules of placement.

The last segment of a ledger that is not closed is left alone: its ensemble belongs to the writer. A segment with a bookie that is not
registered is left alone as well, since lost copies are made again first.

Source: BookKeeper `ReplicationWorker.getNeedRepairedPlacementNotAdheringFragments`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from triplicate.autorecovery.core.fragments import LedgerFragment, bounded_segments
from triplicate.errors import NotEnoughBookies
from triplicate.ledger import (
    Adherence,
    EnsembleSegment,
    LedgerMetadata,
    PlacementRules,
    PlacementVerdict,
    RandomSource,
    ensemble_verdict,
    mend_ensemble,
)


@dataclass(frozen=True, slots=True)
class FragmentMove:
    """The copies of a fragment go to the bookie `target`."""

    fragment: LedgerFragment
    target: str


@dataclass(frozen=True, slots=True)
class MisplacedCopies:
    """How the placement of a ledger is mended.

    Attributes:
        moves: in the order in which they are made. The fragments have the present ensembles, so that after the first of a segment, the
            others are planned again.
        reasons: why the ensembles are not as the rules ask, each with its first entry. Preferred rules are included.
        refused: segments that break a rule and that no move mends, with the reason.
        open_segment: why the last segment of an open ledger breaks a rule; empty if it does not, or the ledger is closed.
    """

    moves: tuple[FragmentMove, ...] = ()
    reasons: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    open_segment: str = ""

    @property
    def entries(self) -> int:
        """Number of copies that move."""
        return sum(move.fragment.count for move in self.moves)


def misplaced_copies(
    metadata: LedgerMetadata, rules: PlacementRules, targets: Collection[str], registered: Collection[str], rng: RandomSource
) -> MisplacedCopies:
    """Plan the moves of a ledger.

    Args:
        rules: with the sites of all its bookies.
        targets: bookies that accept copies.
        registered: bookies that are registered, as writable or read-only.
        rng: the node's random stream for placement.
    """
    moves: list[FragmentMove] = []
    reasons: list[str] = []
    refused: list[str] = []
    for segment, last_entry_id in bounded_segments(metadata):
        verdict = ensemble_verdict(segment.ensemble, rules)
        if verdict.adherence is Adherence.STRICT:
            continue
        reasons.append(_described(segment, verdict))
        unregistered = [bookie_id for bookie_id in segment.ensemble if bookie_id not in registered]
        if unregistered:
            names = ", ".join(unregistered)
            refused.append(f"from entry {segment.first_entry_id}: {names} is not registered; its copies are made again first")
            continue
        try:
            mend = mend_ensemble(segment.ensemble, targets, rng, rules)
        except NotEnoughBookies as error:
            if verdict.adherence is Adherence.FAILED:
                refused.append(f"from entry {segment.first_entry_id}: {error}")
            continue
        moves += [
            FragmentMove(
                LedgerFragment(segment.first_entry_id, last_entry_id, segment.ensemble, move.position, metadata.write_quorum), move.target
            )
            for move in mend.moves
        ]
    return MisplacedCopies(tuple(moves), tuple(reasons), tuple(refused), _open_segment(metadata, rules))


def _open_segment(metadata: LedgerMetadata, rules: PlacementRules) -> str:
    if metadata.is_closed:
        return ""
    verdict = ensemble_verdict(metadata.last_segment.ensemble, rules)
    return _described(metadata.last_segment, verdict) if verdict.adherence is Adherence.FAILED else ""


def _described(segment: EnsembleSegment, verdict: PlacementVerdict) -> str:
    return f"from entry {segment.first_entry_id}: {'; '.join(verdict.reasons)}"
