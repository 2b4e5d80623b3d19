"""An error that nobody expects, met by one batch of a key-value store, ends the leadership."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.core.decisions import BatchDecision, decide
from triplicate.kv.core.operations import StoreBatch
from triplicate.kv.core.store_records import encode_record
from triplicate.kv.engine.store_leadership import StoreLeadership

TESTS = ["tests/unit/kv/engine/test_store_leadership.py::test_whatever_a_batch_meets_fails_the_batch_only"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def unguarded(self: StoreLeadership, batch: StoreBatch, time_ms: int, position: int) -> tuple[BatchDecision, bytes]:
        decision = decide(batch, self._stored, time_ms, position, self._settings.limits)
        return decision, encode_record(decision.effects)

    patch(StoreLeadership, "_decide", unguarded)
