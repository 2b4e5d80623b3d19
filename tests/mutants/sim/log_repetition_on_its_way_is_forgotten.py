"""A writer remembers the last entries of a producer, durable or not: a repetition of one before them is acknowledged at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.producer_table import RECENT_BATCHES, ProducerTable

    accept = ProducerTable.accept

    def forgetful(self: Any, identity: bytes, epoch: int, sequence: int, now_us: int, waiter: Any) -> None:
        accept(self, identity, epoch, sequence, now_us, waiter)
        recent = self._known[identity].recent
        while len(recent) > RECENT_BATCHES:
            recent.popleft()

    patch(ProducerTable, "accept", forgetful)
