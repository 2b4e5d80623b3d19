"""A copy that was suspected because of its position continues without comparing itself with the log."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/hosting/test_database_node.py::test_a_copy_whose_last_batch_is_not_the_logs_is_rebuilt",
    "tests/unit/replica/test_replica.py::test_a_copy_given_up_for_its_place_is_verified_and_goes_on",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from tests.unit.replica.counter_rig import Counter
    from triplicate.replica import Replica
    from triplicate.sql.engine.sql_database import SqlDatabase

    async def believe(self: Replica, suspicion: str) -> None:
        if isinstance(self._machine, SqlDatabase):
            self._machine.availability.verified()
        elif isinstance(self._machine, Counter):
            self._machine.suspicion = self._machine.reason = None

    patch(Replica, "_verify", believe)
