"""A dead leader's election node is deleted without checking that it is not a successor's."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import Candidate, Election, PeerLoss

TESTS = [
    "tests/unit/replica/test_failure_detector.py::test_the_sign_of_a_successor_stays_where_another_was_to_be_taken_down",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def regardless(self: Election, leader: Candidate, session_id: int, loss: PeerLoss) -> bool:
        await self._tree.delete(self._leader_path)
        return True

    patch(Election, "_delete_leader_node", regardless)
