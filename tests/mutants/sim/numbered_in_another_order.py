"""Entries appended together are numbered in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.add_pipeline import Payload
    from triplicate.client.write.ledger_writer import LedgerWriter

    append_many_nowait = LedgerWriter.append_many_nowait

    def last_first(self: LedgerWriter, payloads: Iterable[Payload]) -> asyncio.Future[range]:
        return append_many_nowait(self, list(payloads)[::-1])

    patch(LedgerWriter, "append_many_nowait", last_first)
