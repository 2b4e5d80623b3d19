"""A producer's number may be True, which counts as 1."""

from collections.abc import Callable

from triplicate.log.core import producer_table
from triplicate.log.core.producer_table import check_sequence
from triplicate.log.writing import log_producer

TESTS = [
    "tests/unit/log/core/test_producer_table.py::test_an_old_instance_of_a_producer_is_refused",
    "tests/unit/log/writing/test_log_producer.py::test_a_repeated_append_is_there_once_and_returns_its_offset",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(name: str, sequence: int) -> None:
        check_sequence(name, int(sequence) if isinstance(sequence, bool) else sequence)

    patch(producer_table, "check_sequence", broken)
    patch(log_producer, "check_sequence", broken)
