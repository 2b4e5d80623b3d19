"""The change feed names a row whose key an update does not change by its rowid, also where the table has a key of another kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triplicate.sql.core import committed_changes
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.records import RowKind, RowRun

TESTS = ["tests/unit/sql/core/test_committed_changes.py::test_a_copy_that_goes_by_the_keys_is_the_table"]

_key = committed_changes._key


def _by_rowid(run: RowRun, index: int, new: Mapping[str, Value] | None) -> Any:
    return _key(run, index, new if run.kind is RowKind.INSERT else None)


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(committed_changes, "_key", _by_rowid)
