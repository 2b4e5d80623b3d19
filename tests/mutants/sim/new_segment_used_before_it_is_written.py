"""A new ensemble is used, and confirms entries, while the metadata that names it is still being written."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from triplicate.errors import TriplicateError

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.patience import Patience
    from triplicate.ledger import LedgerMetadata
    from triplicate.metadata import Versioned

    swap = Patience.swap

    async def in_memory_first(
        self: Patience,
        current: Versioned,
        propose: Callable[[LedgerMetadata], LedgerMetadata],
        settled: Callable[[Versioned], Versioned | None],
    ) -> Versioned:
        if "change of ensemble" not in self._purpose:
            return await swap(self, current, propose, settled)
        self._services.scope.spawn(_written(swap(self, current, propose, settled)), name="write metadata")

        return Versioned(propose(current.value), current.version + 1)

    patch(Patience, "swap", in_memory_first)


async def _written(writing: Coroutine[Any, Any, object]) -> None:
    # Whoever goes on without it does not hear that it failed.
    with suppress(TriplicateError):
        await writing
