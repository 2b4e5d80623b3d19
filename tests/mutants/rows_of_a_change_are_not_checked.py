"""A change is stored although the rows that it returns cannot be sent, and its client gets an error that says it failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.core.interface import Row
from triplicate.sql.pg.protocol import portal_runner
from triplicate.sql.pg.protocol.prepared_statements import Portal

TESTS = ["tests/unit/sql/pg/protocol/test_conversation.py::test_a_change_whose_rows_cannot_be_sent_is_not_stored"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def accept(portal: Portal, rows: Sequence[Row]) -> None:
        return

    patch(portal_runner, "check_rows", accept)
