"""The PostgreSQL door answers errors of SQL only; any other error ends the client's connection."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import SqlError
from triplicate.sql.pg.protocol import conversation

TESTS = ["tests/unit/sql/pg/protocol/test_conversation.py::test_a_defect_fails_its_statement_and_the_connection_goes_on"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(conversation, "FAULTS", (SqlError,))
