"""A leader whose node in the metadata was deleted waits for its log without a limit: cut off from the bookies, it keeps its clients."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import LogWriter
from triplicate.replica import Replica

TESTS = ["tests/unit/replica/test_replica.py::test_a_deposed_leader_whose_log_does_not_answer_gives_way"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def confirm_lead(self: Replica, writer: LogWriter, limit_s: float, doubt: str) -> None:
        await writer.noop()

    patch(Replica, "_confirm_lead", confirm_lead)
