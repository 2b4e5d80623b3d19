"""Bookies in quarantine are chosen for new ensembles like others."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger.bookie_health import BookieHealth

TESTS = ["tests/unit/client/test_hedged_reads.py::test_a_new_ensemble_avoids_a_bookie_in_quarantine"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(BookieHealth, "avoided", lambda self, now: [])
