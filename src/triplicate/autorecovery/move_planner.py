"""Plans for moving the copies of ledgers that break the rules of placement, by the present bookies of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from triplicate.autorecovery.core.misplaced_copies import MisplacedCopies, misplaced_copies
from triplicate.client import Client
from triplicate.ledger import Adherence, LedgerMetadata, PlacementVerdict, ledger_verdict
from triplicate.metadata import BookieServiceInfo

MISPLACED = "misplaced"
"""How the note of a ledger begins that was marked because of its placement."""


class PlannedLedger(NamedTuple):
    """The verdict on a ledger, and the moves that mend it."""

    verdict: PlacementVerdict
    plan: MisplacedCopies


class MovePlanner:
    """Plans the moves of one cluster under the client's policy of placement."""

    def __init__(self, client: Client) -> None:
        self._metadata = client.metadata
        self._placement = client.placement
        self._rng = client.host.entropy.stream("placement")

    async def registered(self) -> dict[str, BookieServiceInfo]:
        """The writable and the read-only bookies."""
        bookies = self._metadata.bookies
        # The writable list is read twice: a bookie that moves between the lists can be missed in both.
        before = await bookies.writable()
        return {**before, **await bookies.readonly(), **await bookies.writable()}

    async def targets(self) -> list[str]:
        """The bookies that may get copies."""
        leaving = await self._metadata.read_only_requests.leaving()
        return [bookie_id for bookie_id in await self._metadata.bookies.writable() if bookie_id not in leaving]

    async def plan(self, metadata: LedgerMetadata, targets: Collection[str], registered: Mapping[str, BookieServiceInfo]) -> PlannedLedger:
        """The verdict on a ledger, and its moves; none while the locations of bookies are not certain."""
        ensembles = [bookie_id for segment in metadata.segments for bookie_id in segment.ensemble]
        rules = await self._placement.rules(metadata.write_quorum, registered, ensembles)
        verdict = ledger_verdict(metadata, rules)
        if verdict.adherence is Adherence.STRICT:
            return PlannedLedger(verdict, MisplacedCopies())
        problems = self._placement.problems
        if problems:
            refused = (f"the locations of bookies are not certain: {'; '.join(problems)}",)
            return PlannedLedger(verdict, MisplacedCopies(reasons=verdict.reasons, refused=refused))
        return PlannedLedger(verdict, misplaced_copies(metadata, rules, targets, registered, self._rng))
