"""An undelete restores a database whose log is being deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.sql import DroppedDatabase

TESTS = ["tests/unit/sql/hosting/test_dropping.py::test_a_log_that_is_being_deleted_is_not_brought_back_and_the_deletion_goes_on"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.hosting import dropping

    decode = dropping.decode_tombstone

    def whole(data: bytes, dropped_ms: int, version: int) -> DroppedDatabase:
        return replace(decode(data, dropped_ms, version), state=dropping.DROPPED)

    patch(dropping, "decode_tombstone", whole)
