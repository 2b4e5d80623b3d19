"""Requests of clients and the bookie's answers, by their place in the record of disk operations.

The book derives from them which state a crash must leave.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = 1 << 60


@dataclass(slots=True)
class Claim:
    """One request that changes something. Places are numbers of disk operations done before."""

    value: bytes
    asked: int
    answered: int = NEVER
    """When the answer OK was sent."""
    durable: int = NEVER
    """The place from which a power cut may not undo it: its answer, or for a deferred add the answer to a later force."""


@dataclass(slots=True)
class Wanted:
    """The value of one entry, fence or confirmation after a crash: one of `allowed`, or missing if it is not `required`."""

    allowed: list[bytes]
    required: bool


@dataclass(slots=True)
class LedgerBook:
    """All requests for one ledger."""

    entries: dict[int, list[Claim]] = field(default_factory=dict)
    fences: list[Claim] = field(default_factory=list)
    lacs: list[Claim] = field(default_factory=list)
    deleted: int = NEVER
    """When its metadata was deleted."""
    taken: int = NEVER
    """When a round of garbage collection began that may delete its entries. Until then the ledger is in the trash and readable."""
    collected: int = NEVER
    """When a round of garbage collection that deleted it had ended."""


class Book:
    """All requests and answers. A later life of the bookie continues the count of places."""

    def __init__(self) -> None:
        self.ledgers: dict[int, LedgerBook] = {}

    def of(self, ledger_id: int) -> LedgerBook:
        return self.ledgers.setdefault(ledger_id, LedgerBook())

    def forced(self, ledger_id: int, asked: int, answered: int) -> None:
        """A force requested at that place is answered: every add answered before its request is durable."""
        for claims in self.of(ledger_id).entries.values():
            for claim in claims:
                if claim.answered <= asked:
                    claim.durable = min(claim.durable, answered)


def wanted(claims: list[Claim], place: int, *, killed: bool) -> Wanted | None:
    """The requirement of the newest answer at a place; None if no value may exist."""
    asked = [claim for claim in claims if claim.asked < place]
    if not asked:
        return None
    newest = -1
    for index, claim in enumerate(asked):
        if (claim.answered if killed else claim.durable) <= place:
            newest = index
    return Wanted([claim.value for claim in asked[max(newest, 0) :]], newest >= 0)
