"""A copy as of a position has the transaction behind it as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.backup.core.target import TargetSearch
from triplicate.sql.core.records import BatchHeader

TESTS = [
    "tests/unit/sql/backup/core/test_target.py::test_a_target_is_found_between_two_transactions[target2-expected2]",
    "tests/unit/sql/backup/core/test_target.py::test_a_target_is_found_between_two_transactions[target12-expected12]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    count = TargetSearch._count

    def one_more(self: TargetSearch, first_offset: int, header: BatchHeader, records: Sequence[bytes]) -> int:
        return min(len(records), count(self, first_offset, header, records) + 1)

    patch(TargetSearch, "_count", one_more)
