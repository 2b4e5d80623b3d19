"""Only recovery's first read fences, so a bookie whose fence was lost continues to accept adds (BookKeeper issues 2614, 2616)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.ledger_recovery import _Attempt
    from triplicate.wire import LAST_ENTRY

    patch(_Attempt, "must_fence", lambda self, entry_id: entry_id == LAST_ENTRY)
