"""Recovery reads and closes without fencing any bookie."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.ledger_recovery import _Attempt

    patch(_Attempt, "must_fence", lambda self, entry_id: False)
