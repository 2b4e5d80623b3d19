"""A bookie that is not registered counts as writable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.cli.overview import cluster_sources
from triplicate.cli.overview.core import cluster_facts
from triplicate.cli.overview.core.cluster_facts import BookieFacts, BookieState, LedgerCounts, Registrations

TESTS = [
    "tests/unit/cli/overview/test_cluster_sources.py::test_a_bookie_that_is_not_registered_is_lost_and_its_ledgers_are_counted",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = cluster_facts.all_bookies

    def all_bookies(registrations: Registrations, ledgers: LedgerCounts) -> tuple[BookieFacts, ...]:
        return tuple(replace(one, state=BookieState.WRITABLE) for one in original(registrations, ledgers))

    patch(cluster_sources, "all_bookies", all_bookies)
