"""Each connection reads a schema for itself, the event loop's too, which may read little."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.executor.examined_schema import ExaminedSchema, NewestSchema

TESTS = ["tests/unit/sql/executor/test_loop_reader.py::test_what_a_thread_has_read_of_a_large_schema_is_not_read_again"]


def _own(self: NewestSchema, connection: apsw.Connection) -> ExaminedSchema:
    return _of(NewestSchema(), connection)


_of = NewestSchema.of


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(NewestSchema, "of", _own)
