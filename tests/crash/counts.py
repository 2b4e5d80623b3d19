"""Counts of trials, and the losses they found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

LOSSES_SHOWN = 20


@dataclass(slots=True)
class Counts:
    tried: Counter[str] = field(default_factory=Counter)
    """Trials by kind, as the table names it."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """The ways in which damage was noticed; only for bit flips."""
    left_out: int = 0
    """Cuts beyond the bound; others of the same moment were drawn in their place."""
    losses: int = 0
    shown: list[str] = field(default_factory=list)
    """The first losses, each with its cause."""

    def lose(self, where: str, problems: list[str]) -> None:
        if problems:
            self.losses += 1
            if len(self.shown) < LOSSES_SHOWN:
                self.shown.append(f"{where}: {'; '.join(problems[:3])}{f'; and {len(problems) - 3} more' if len(problems) > 3 else ''}")

    def add(self, other: Counts) -> None:
        self.tried.update(other.tried)
        self.outcomes.update(other.outcomes)
        self.left_out += other.left_out
        self.losses += other.losses
        self.shown = (self.shown + other.shown)[:LOSSES_SHOWN]
