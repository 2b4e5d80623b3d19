"""How far a decommission is, for those that show it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from triplicate.autorecovery.recovery_pass import LedgerNeed


class DecommissionPhase(enum.StrEnum):
    """The parts of a decommission, in their order. A verdict that finds missing copies is followed by another move."""

    CHECK = "checks whether enough bookies remain"
    READ_ONLY = "waits until the bookies are read-only"
    MOVE = "moves ledgers"
    VERDICT = "compares lists of entries"
    REMOVE = "removes the cookies"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that keeps a bookie from being decommissioned now.

    Args:
        may_pass: whether it can pass by itself, as when a writer leaves. Otherwise somebody must act.
    """

    ledger_id: int
    reason: str
    may_pass: bool


@dataclass(slots=True)
class DecommissionProgress:
    """How far a decommission is. Changed while it runs.

    Attributes:
        moving: the ledgers that are being repaired.
        ledgers_left: ledgers that still named the bookies when they were last examined, without those repaired since.
        bytes_left: estimate of the payload bytes that are still to be copied.
        bytes_copied: bytes of the entries copied, with their headers.
        obstacles: what the last round could not move.
    """

    phase: DecommissionPhase = DecommissionPhase.CHECK
    moving: dict[int, None] = field(default_factory=dict)
    ledgers_left: int = 0
    bytes_left: int = 0
    bytes_copied: int = 0
    obstacles: tuple[Obstacle, ...] = ()
    on_change: Callable[[], None] = field(default=lambda: None)

    def enter(self, phase: DecommissionPhase) -> None:
        """The next part begins."""
        self.phase = phase
        self.on_change()

    def find(self, needs: Iterable[LedgerNeed]) -> None:
        """The ledgers that name the bookies were examined."""
        found = tuple(needs)
        self.ledgers_left = len(found)
        self.bytes_left = sum(need.size_bytes for need in found)
        self.on_change()

    def begin(self, ledger_id: int) -> None:
        """The repair of a ledger begins."""
        self.moving[ledger_id] = None
        self.on_change()

    def end(self, ledger_id: int) -> None:
        """The repair of a ledger has ended, in any way."""
        self.moving.pop(ledger_id, None)
        self.ledgers_left = max(0, self.ledgers_left - 1)
        self.on_change()

    def copied(self, size_bytes: int) -> None:
        """Entries were copied."""
        self.bytes_copied += size_bytes
        self.bytes_left = max(0, self.bytes_left - size_bytes)
        self.on_change()

    def meet(self, obstacles: tuple[Obstacle, ...]) -> None:
        """A round has ended with these obstacles."""
        self.obstacles = obstacles
        self.on_change()
