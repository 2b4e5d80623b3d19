"""The statements of one simple query are run in one turn of the event loop, however many there are."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import conversation

TESTS = ["tests/unit/sql/pg/protocol/test_conversation_hostile_statements.py::test_no_statement_holds_the_loop"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(conversation, "TURN_COST", 10**9)
