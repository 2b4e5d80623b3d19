"""A client takes the answer of a replaced bookie, that it cannot know, for "no such entry"."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client import answers, lac_read, range_read, reader, recovery
    from triplicate.wire import Status

    for module in (answers, lac_read, range_read, reader, recovery):
        patch(module, "EXPLICIT_NEGATIVES", (*answers.EXPLICIT_NEGATIVES, Status.UNKNOWN_LEDGER_STATE))
