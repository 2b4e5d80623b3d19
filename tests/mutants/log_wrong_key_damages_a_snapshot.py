"""A node with a wrong key takes an encrypted snapshot for damaged and marks it for everybody."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_database_node_encrypted.py::test_a_node_without_the_key_waits_for_it_and_marks_nothing_as_damaged"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import EntryNotAuthentic, SnapshotDamaged
    from triplicate.log.core.snapshot_format import ContentCheck, SnapshotHeader

    header = ContentCheck.header

    def hasty(self: ContentCheck, payload: bytes) -> SnapshotHeader:
        try:
            return header(self, payload)
        except EntryNotAuthentic as error:
            raise SnapshotDamaged(str(error)) from error

    patch(ContentCheck, "header", hasty)
