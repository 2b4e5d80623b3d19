"""A number below the first one of a producer is appended, behind greater ones."""

from collections.abc import Callable
from typing import Any

from triplicate.log.core.producer_table import ProducerTable

TESTS = ["tests/unit/log/writing/test_log_producer.py::test_a_repeated_append_is_there_once_and_returns_its_offset"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    check = ProducerTable.check

    def broken(self: ProducerTable[Any], name: str, identity: bytes, epoch: int, sequence: int, now_us: int) -> object:
        found = check(self, name, identity, epoch, sequence, now_us)
        return None if found is not None and found.batch is None else found

    patch(ProducerTable, "check", broken)
