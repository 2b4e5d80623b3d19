"""The sweep deletes a ledger without checking that the head is unchanged since it looked for the ledger."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.upkeep import orphans

TESTS = [
    "tests/unit/log/upkeep/test_orphans.py::test_a_sweep_spares_a_segment_that_is_opened_while_it_looks",
    "tests/unit/log/upkeep/test_orphans.py::test_a_deletion_for_a_log_that_is_gone_fails_when_the_log_is_made_meanwhile",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(orphans, "unchanged", lambda store, name, stored: [])
