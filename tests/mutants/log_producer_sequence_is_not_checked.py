"""The writer does not compare a producer's sequence number: a record that is appended again is there twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/writing/test_log_producer.py::test_a_repeated_append_is_there_once_and_returns_its_offset"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.producer_table import ProducerTable

    def anything(self: Any, name: str, identity: bytes, epoch: int, sequence: int, now_us: int) -> None:
        return None

    patch(ProducerTable, "check", anything)
