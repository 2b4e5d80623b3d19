"""Entries confirmed at the same time are acknowledged in reverse order."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.ledger_writer import LedgerWriter

    release = LedgerWriter.release

    def newest_first(self: LedgerWriter, before: int, confirmed: int) -> int:
        due = [waiting for waiting in self._waiting if waiting[0] <= confirmed]
        later = [waiting for waiting in self._waiting if waiting[0] > confirmed]
        self._waiting.clear()
        self._waiting.extend([*reversed(due), *later])
        return release(self, before, confirmed)

    patch(LedgerWriter, "release", newest_first)
