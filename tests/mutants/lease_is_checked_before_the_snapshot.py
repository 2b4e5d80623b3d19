"""A read checks the lease before it takes the snapshot that it answers from, so the lease may end in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.core.interface import Cursor, Prepared, Value
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.engine import session
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.read_admission import ReadAdmission, confirm

TESTS = [
    "tests/unit/sql/engine/test_leadership_lease.py::test_a_process_held_still_between_its_look_at_the_lease_and_its_snapshot_does_not_answer",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = session.SqlSession._read

    async def read(self: session.SqlSession, prepared: Prepared, parameters: Sequence[Value], version: int | None) -> Cursor:
        await confirm(self._database.leadership, self.waits)
        return await original(self, prepared, parameters, version)

    async def confirmed_before(leadership: Leadership | None, waits: StatementWaits) -> None:
        return

    async def good_already(self: ReadAdmission, leadership: Leadership | None, valid_until: float) -> bool:
        return True

    patch(session.SqlSession, "_read", read)
    patch(ReadAdmission, "is_confirmed", good_already)
    patch(session, "confirm", confirmed_before)
