"""How far an open ledger must be copied back to a bookie whose disks were replaced, before "no such entry" is true there again.

The writer of the ledger lives, and the acknowledgements from the lost disks still count for it. An entry that the old disks
acknowledged may be confirmed later, by the acknowledgement of another bookie. So all entries that were sent to the old disks must be on the
new ones, and nobody but the writer knows the last of these. An upper bound follows from what the other bookies store:

1. *horizon*: the greatest entry on any other bookie of the last segment, read while the new disks are in use.
2. *proof*: the first entry behind the horizon whose ack quorum needs a bookie that answered at step 1. None of these had it then, so it was
   not confirmed before. The old disks may have acknowledged it, and so may each bookie of its write set that was silent.
3. *witness*: an entry whose header confirms the proof, so that it was created after step 1. The writer numbers its entries in their order,
   so every entry that the old disks may have is before the witness.
4. *end*: a last-add-confirmed that covers the witness. All entries up to it are confirmed and can be copied.

With an ack quorum of two and all answers, every entry is a proof. A silent bookie counts only where it shares a write set, also one whose
disks were replaced as well: two at opposite ends of a striped ensemble are refilled at the same time. Where each write set has an ack
quorum of silent bookies, these may have confirmed entries alone, up to an unknown one.

A writer whose caller chooses the entry ids does not create them in order, so nothing here holds for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from triplicate.autorecovery.core.fragments import LedgerFragment
from triplicate.ledger import EnsembleSegment, write_set


@dataclass(frozen=True, slots=True)
class LastStored:
    """The last entry of a ledger on one bookie; both -1 if it has none.

    Args:
        last_add_confirmed: of the entry's header.
    """

    entry_id: int
    last_add_confirmed: int


class OpenRefillBound:
    """The bound of one open ledger for one bookie and its present disks.

    Attributes:
        end: the last entry to copy; None while it is unknown. It never changes once it is known.
        needed: what the bound waits for; empty once the end is known.
        silent: bookies that must answer first, since entries may have been confirmed by them and the old disks alone.
    """

    def __init__(self) -> None:
        self.end: int | None = None
        self.needed = "an answer of the other bookies"
        self.silent: tuple[str, ...] = ()
        self._horizon: int | None = None
        self._proof = 0
        self._witness: int | None = None

    @property
    def has_horizon(self) -> bool:
        """Whether step 1 is done."""
        return self._horizon is not None

    def begin(
        self, segment: EnsembleSegment, bookie_id: str, write_quorum: int, ack_quorum: int, answers: Mapping[str, LastStored]
    ) -> None:
        """Set the horizon, unless too few of the other bookies answered. Once it is set, this changes nothing.

        Args:
            segment: the last one, by metadata that were read after the new disks were in use, and before the bookies were asked.
            bookie_id: the bookie whose disks were replaced.
            answers: of the bookies that answered.
        """
        if self.has_horizon:
            return
        others = [name for name in segment.ensemble if name != bookie_id]
        silent = tuple(name for name in others if name not in answers)
        # Entries before the segment may be on none of its bookies.
        horizon = max([segment.first_entry_id - 1, *(answers[name].entry_id for name in others if name in answers)])
        proof = _first_proof(segment, write_quorum, ack_quorum, horizon, {bookie_id, *silent})
        if proof is None:
            self.silent = silent
            self.needed = (
                f"answers of {', '.join(silent)}"
                if silent
                else "the end of its segment, since one bookie alone acknowledges its entries (ack quorum 1)"
            )
            return
        self.silent = ()
        self._horizon, self._proof = horizon, proof
        self.needed = f"entries of its writer behind entry {proof - 1}"

    def observe(self, answers: Mapping[str, LastStored]) -> None:
        """Advance by the last entries of bookies, read after `begin`. Has no effect before the horizon is set."""
        if self._horizon is None or self.end is not None:
            return
        if self._witness is None:
            self._witness = min(
                (last.entry_id for last in answers.values() if last.last_add_confirmed >= self._proof),
                default=None,
            )
        if self._witness is None:
            return
        confirmed = max((last.last_add_confirmed for last in answers.values()), default=-1)
        if confirmed >= self._witness:
            self.end = confirmed
            self.needed = ""
        else:
            self.needed = f"an entry of its writer that confirms entry {self._witness}"


def _first_proof(segment: EnsembleSegment, write_quorum: int, ack_quorum: int, horizon: int, doubtful: Collection[str]) -> int | None:
    """The first entry behind the horizon that the doubtful bookies cannot have confirmed alone; None if there is none."""
    size = len(segment.ensemble)
    for entry_id in range(horizon + 1, horizon + 1 + size):
        names = [segment.ensemble[position] for position in write_set(entry_id, size, write_quorum)]
        if sum(name in doubtful for name in names) < ack_quorum:
            return entry_id
    return None


class OpenRefills:
    """The open ledgers of one refill: their bounds, and what is complete on the bookie. Valid for one incarnation of its disks.

    Args:
        bookie_id: the bookie whose disks were replaced.
        incarnation: the number of its present disks.
    """

    def __init__(self, bookie_id: str, incarnation: int) -> None:
        self.bookie_id = bookie_id
        self.incarnation = incarnation
        self._bounds: dict[int, OpenRefillBound] = {}
        self._complete: dict[int, set[LedgerFragment]] = {}

    def bound_of(self, ledger_id: int) -> OpenRefillBound:
        """The bound of a ledger. It is kept, so that a later repair of the ledger advances it."""
        return self._bounds.setdefault(ledger_id, OpenRefillBound())

    def needed_by(self, ledger_id: int) -> str:
        """The event that the bound of a ledger waits for; empty if there is no bound."""
        bound = self._bounds.get(ledger_id)
        return "" if bound is None else bound.needed

    def silent_for(self, ledger_id: int) -> tuple[str, ...]:
        """The bookies that must answer before the bound of a ledger can be found; none if there is no bound."""
        bound = self._bounds.get(ledger_id)
        return () if bound is None else bound.silent

    def is_complete(self, ledger_id: int, fragment: LedgerFragment) -> bool:
        """Whether every entry of a fragment was seen on the bookie since its disks were replaced."""
        return fragment in self._complete.get(ledger_id, ())

    def completed(self, ledger_id: int, fragment: LedgerFragment) -> None:
        """Every entry of a fragment was read back from the bookie."""
        self._complete.setdefault(ledger_id, set()).add(fragment)

    def keep_only(self, ledger_ids: Collection[int]) -> None:
        """Forget every other ledger."""
        self._bounds = {ledger_id: bound for ledger_id, bound in self._bounds.items() if ledger_id in ledger_ids}
        self._complete = {ledger_id: found for ledger_id, found in self._complete.items() if ledger_id in ledger_ids}
