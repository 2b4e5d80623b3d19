"""The lease begins when an append is acknowledged, when another node may already lead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica import LeaderReads, SentReads

    original = LeaderReads.acknowledge

    def acknowledge(self: LeaderReads, sent: SentReads) -> None:
        original(self, replace(sent, sent_at=self._clock.elapsed()))

    patch(LeaderReads, "acknowledge", acknowledge)
