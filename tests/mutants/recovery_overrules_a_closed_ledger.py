"""A recovery that finds the ledger already closed closes it again, at another entry."""

from collections.abc import Callable

from triplicate.client import ledger_recovery
from triplicate.client.context import ClientContext
from triplicate.client.metadata_retry import MetadataRetry
from triplicate.ledger import LedgerMetadata
from triplicate.metadata import Versioned

TESTS = [
    "tests/unit/client/test_ledger_recovery_at_once.py::test_the_first_close_of_a_ledger_counts_with_any_last_entry",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def broken(
        context: ClientContext, ledger_id: int, marked: Versioned, proposed: LedgerMetadata, patience: MetadataRetry
    ) -> Versioned:
        return await patience.swap(marked, lambda _: proposed, lambda there: None)

    patch(ledger_recovery, "_close", broken)
