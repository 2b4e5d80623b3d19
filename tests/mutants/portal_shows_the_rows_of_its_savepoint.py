"""A portal that is bound before a savepoint and started within it stays open with the rows that ROLLBACK TO undoes."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.portal_runner import PortalRunner
from triplicate.sql.pg.protocol.prepared_statements import Portal

TESTS = [
    "tests/unit/sql/pg/protocol/test_conversation.py::test_a_portal_that_is_started_within_a_savepoint_does_not_give_its_rows_afterwards"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    start = PortalRunner.start

    async def as_bound(self: PortalRunner, portal: Portal) -> None:
        savepoint = portal.savepoint
        try:
            await start(self, portal)
        finally:
            portal.savepoint = savepoint

    patch(PortalRunner, "start", as_bound)
