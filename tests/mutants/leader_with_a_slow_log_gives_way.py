"""A leader without an answer of the metadata gives its log no more time than a deposed one: slow bookies cost it the lead."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import LogWriter
from triplicate.replica import Replica

TESTS = ["tests/unit/replica/test_replica.py::test_a_leader_with_a_slow_log_leads_on_while_the_metadata_do_not_answer"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def hurry(self: Replica, writer: LogWriter) -> None:
        await self._confirm_lead(writer, self._settings.confirm_lead_s, "")

    patch(Replica, "_confirm_unseen", hurry)
