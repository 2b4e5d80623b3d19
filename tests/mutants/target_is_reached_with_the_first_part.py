"""A restore to a transaction in parts ends behind its first part."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup.core import target
from triplicate.sql.core.records import WHOLE

TESTS = [
    "tests/unit/sql/backup/core/test_target.py::test_a_transaction_in_parts_is_reached_with_its_last_part",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(target, "part_of", lambda record: WHOLE)
