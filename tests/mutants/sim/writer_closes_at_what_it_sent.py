"""Closing a ledger without waiting ends it at the last entry sent, not at the last confirmed one."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.add_pipeline import AddPipeline
    from triplicate.client.write.ledger_close import LedgerClose

    close = AddPipeline._run_close

    async def at_what_was_sent(self: AddPipeline, closing: LedgerClose, *, wait: bool) -> int:
        if not wait and self.failure is None:
            self.last_add_confirmed = self.last_add_pushed
        return await close(self, closing, wait=wait)

    patch(AddPipeline, "_run_close", at_what_was_sent)
