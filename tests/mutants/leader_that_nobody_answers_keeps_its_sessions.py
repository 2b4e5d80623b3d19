"""A leader whose metadata do not answer does not look at its log: cut off from both, it keeps its clients until the cut is over."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import LogWriter
from triplicate.replica import Replica

TESTS = [
    "tests/unit/replica/test_replica.py::test_a_leader_that_neither_metadata_nor_log_answer_gives_way",
    "tests/simulation/test_databases.py::test_a_leader_that_only_its_clients_reach_gives_way",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def keep(self: Replica, writer: LogWriter) -> None:
        return

    patch(Replica, "_confirm_unseen", keep)
