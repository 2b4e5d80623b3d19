"""DROP INDEX and DROP NOT NULL take away what an added primary key consists of."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import definitions

TESTS = ["tests/unit/sql/executor/test_table_keys.py::test_what_the_key_needs_cannot_be_taken_away"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(definitions, "refuse_broken_key", lambda *_: None)
