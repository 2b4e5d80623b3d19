"""A replication worker trusts a target's acknowledgements, and names it without a look at its list of entries."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import ledger_copier

TESTS = ["tests/unit/autorecovery/test_ledger_copier.py::test_a_target_that_forgets_an_entry_is_found_out"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def verify(copier: object, job: object) -> None:
        """Trust it."""

    patch(ledger_copier.LedgerCopier, "verify", verify)
