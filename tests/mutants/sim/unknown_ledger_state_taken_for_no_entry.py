"""A client treats a replaced bookie's "unknown" answer as "no such entry"."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client import ledger_recovery
    from triplicate.client.connection import response_errors
    from triplicate.client.read import lac_read, ledger_reader, range_read
    from triplicate.wire import Status

    for module in (response_errors, lac_read, range_read, ledger_reader, ledger_recovery):
        patch(module, "EXPLICIT_NEGATIVES", (*response_errors.EXPLICIT_NEGATIVES, Status.UNKNOWN_LEDGER_STATE))
