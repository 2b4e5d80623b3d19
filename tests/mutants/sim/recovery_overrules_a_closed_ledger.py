"""A recovery that finds the ledger already closed closes it again, at another entry."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client import ledger_recovery
    from triplicate.client.context import ClientContext
    from triplicate.client.metadata_retry import MetadataRetry
    from triplicate.ledger import LedgerMetadata
    from triplicate.metadata import Versioned

    async def broken(
        context: ClientContext, ledger_id: int, marked: Versioned, proposed: LedgerMetadata, patience: MetadataRetry
    ) -> Versioned:
        return await patience.swap(marked, lambda _: proposed, lambda there: None)

    patch(ledger_recovery, "_close", broken)
