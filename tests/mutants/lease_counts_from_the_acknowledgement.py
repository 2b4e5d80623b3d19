"""The lease begins when an append is acknowledged, when another node may already lead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.replica import LeaderReads, SentReads

TESTS = ["tests/unit/sql/engine/test_leadership_lease.py::test_the_lease_counts_from_the_sending_of_an_append"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = LeaderReads.acknowledge

    def acknowledge(self: LeaderReads, sent: SentReads) -> None:
        original(self, replace(sent, sent_at=self._clock.elapsed()))

    patch(LeaderReads, "acknowledge", acknowledge)
