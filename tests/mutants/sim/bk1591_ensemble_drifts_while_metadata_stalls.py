"""While metadata are slow, the writer uses the new ensemble from memory (BookKeeper issue 1591)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from triplicate.errors import TriplicateError

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.metadata_retry import MetadataRetry
    from triplicate.ledger import LedgerMetadata
    from triplicate.metadata import Versioned
    from triplicate.runtime import sleep

    swap = MetadataRetry.swap

    async def in_memory_first(
        self: MetadataRetry,
        current: Versioned,
        propose: Callable[[LedgerMetadata], LedgerMetadata],
        settled: Callable[[Versioned], Versioned | None],
    ) -> Versioned:
        if "change of ensemble" not in self._purpose:
            return await swap(self, current, propose, settled)
        writing = self._context.scope.spawn(_written(swap(self, current, propose, settled)), name="write metadata")
        for _ in range(10):
            if writing.done():
                return await swap(self, current, propose, settled)
            await sleep(self._clock, 0.01)
        return Versioned(propose(current.value), current.version + 1)

    patch(MetadataRetry, "swap", in_memory_first)


async def _written(writing: Coroutine[Any, Any, object]) -> None:
    # Whoever goes on without it does not hear that it failed.
    with suppress(TriplicateError):
        await writing
