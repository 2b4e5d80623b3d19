"""What clients asked of a bookie and what it answered, by the place in the record of the disk: so what must be there after a crash."""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = 1 << 60


@dataclass(slots=True)
class Claim:
    """One request that changes something. Places are numbers of disk operations done before."""

    value: bytes
    asked: int
    answered: int = NEVER
    """When the answer OK went out."""
    durable: int = NEVER
    """From when on a power cut may not undo it: its answer, or for a deferred add that of a later force."""


@dataclass(slots=True)
class Wanted:
    """What one thing must be after a crash: one of `allowed`, or missing where it is not `required`."""

    allowed: list[bytes]
    required: bool


@dataclass(slots=True)
class LedgerBook:
    """All that was asked about one ledger."""

    entries: dict[int, list[Claim]] = field(default_factory=dict)
    fences: list[Claim] = field(default_factory=list)
    lacs: list[Claim] = field(default_factory=list)
    deleted: int = NEVER
    """When its metadata was gone."""
    taken: int = NEVER
    """When a round of garbage collection began that may take what is stored; until then it lies in the trash and may be asked for."""
    collected: int = NEVER
    """When a round of garbage collection that took it had ended."""


class Book:
    """Everything. `place` of a life that goes on after others is counted on."""

    def __init__(self) -> None:
        self.ledgers: dict[int, LedgerBook] = {}

    def of(self, ledger_id: int) -> LedgerBook:
        return self.ledgers.setdefault(ledger_id, LedgerBook())

    def forced(self, ledger_id: int, asked: int, answered: int) -> None:
        """A force that was asked then is answered: every add answered before it was asked is durable."""
        for claims in self.of(ledger_id).entries.values():
            for claim in claims:
                if claim.answered <= asked:
                    claim.durable = min(claim.durable, answered)


def wanted(claims: list[Claim], place: int, *, killed: bool) -> Wanted | None:
    """What the newest answer demands at a place; None: nothing of it may be there."""
    asked = [claim for claim in claims if claim.asked < place]
    if not asked:
        return None
    newest = -1
    for index, claim in enumerate(asked):
        if (claim.answered if killed else claim.durable) <= place:
            newest = index
    return Wanted([claim.value for claim in asked[max(newest, 0) :]], newest >= 0)
