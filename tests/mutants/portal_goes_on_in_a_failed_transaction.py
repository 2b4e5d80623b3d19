"""A portal gives further rows after its transaction has failed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.portal_runner import PortalRunner
from triplicate.sql.pg.protocol.prepared_statements import Portal

TESTS = ["tests/unit/sql/pg/protocol/test_conversation.py::test_a_portal_does_not_go_on_in_a_failed_transaction"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    start = PortalRunner.start

    async def once(self: PortalRunner, portal: Portal) -> None:
        if portal.cursor is None:
            await start(self, portal)

    patch(PortalRunner, "start", once)
