"""A leader is found lost when its node's watch wakes, and the conclusion is dropped."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import Watch
from triplicate.replica import Candidate, Election, PeerLoss
from triplicate.replica.election import _changed
from triplicate.runtime import first_of

TESTS = [
    "tests/unit/replica/test_election.py::test_the_loss_of_a_leader_counts_although_its_node_changes_at_once",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def wait_for_loss(self: Election, leader: Candidate, watch: Watch) -> PeerLoss | None:
        assert self._gone is not None
        _, loss = await first_of([_changed(watch), self._gone(leader.address)], name="leader")
        return loss

    patch(Election, "_wait_for_loss", wait_for_loss)
