"""The late answer to a hedged read is delivered as well, so that it takes the place of an entry that is still on its way."""

from __future__ import annotations

from collections.abc import Callable

CHECKERS = ("acknowledged_is_readable", "failed")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.read.range_read import DeliveredEntries

    patch(DeliveredEntries, "has", lambda self, entry_id: False)
