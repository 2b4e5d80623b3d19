"""A leader's election node is deleted for an old silence, so a node that was cut off deposes a leader when it returns."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import Candidate, Election, PeerLoss

TESTS = [
    "tests/unit/replica/test_failure_detector.py::test_a_silence_is_not_acted_upon_when_the_metadata_answer_too_late",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def depose(self: Election, leader: Candidate, session_id: int, loss: PeerLoss) -> bool:
        await self._delete_leader_node(leader, session_id, loss)
        return True

    patch(Election, "_depose", depose)
