"""The rewriting of a log's segment closes the new ledger without waiting for all copies of its entries."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("raised_segments_are_complete",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store.ledger_ports import LedgerAppender
    from triplicate.log.upkeep.rewriter import Rewriter

    async def closes_at_once(self: Rewriter, ledger: LedgerAppender) -> int:
        return await ledger.close()

    patch(Rewriter, "_close", closes_at_once)
