"""A statement of any length is parsed and translated on the event loop."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import plans

TESTS = ["tests/unit/sql/pg/protocol/test_conversation_hostile_statements.py::test_no_statement_holds_the_loop"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(plans, "_LOOP_TEXT", 10**9)
