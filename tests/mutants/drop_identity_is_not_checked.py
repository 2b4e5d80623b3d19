"""An undelete, or the deletion of a log, takes the tombstone of a later drop for the one that it has read."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_database_directory_identity.py::test_a_late_end_of_a_drop_does_nothing_to_the_next_drop"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    from triplicate.sql import DroppedDatabase
    from triplicate.sql.hosting import dropping

    decode = dropping.decode_tombstone

    def without(data: bytes, dropped_ms: int, version: int) -> DroppedDatabase:
        return replace(decode(data, dropped_ms, version), drop="")

    patch(dropping, "decode_tombstone", without)
