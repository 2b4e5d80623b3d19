"""A run of adds continues across a change of ledger, flags or master key, so one ledger's check admits another's adds."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.wire import v2_bulk

TESTS = [
    "tests/unit/wire/test_v2_bulk.py::test_a_run_ends_where_something_else_begins",
    "tests/property/test_v2_bulk.py::test_adds_in_bulk_read_as_messages_do",
]


class _EqualToAnything:
    def __ne__(self, other: object) -> bool:
        return False


def apply(patch: Callable[[object, str, object], None]) -> None:
    unpack = v2_bulk._unpack_add

    def careless(buffer: bytes, position: int) -> tuple[int, _EqualToAnything, int, int]:
        size, _, entry_id, last_add_confirmed = unpack(buffer, position)
        return size, _EqualToAnything(), entry_id, last_add_confirmed

    patch(v2_bulk, "_unpack_add", careless)
