"""An auditor casts its vote again if the answer to the first was lost."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import AuditorElection
from triplicate.metadata.core.repair_formats import encode_vote
from triplicate.metadata.retries import retried

TESTS = [
    "tests/unit/metadata/test_underreplication.py::test_a_vote_whose_answer_was_lost_is_not_cast_twice",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def vote(auditor: AuditorElection, bookie_id: str) -> str:
        path = f"{auditor._votes}/V_"
        return (
            await retried(auditor._host, lambda: auditor._tree.create(path, encode_vote(bookie_id), ephemeral=True, sequential=True))
        ).rpartition("/")[2]

    patch(AuditorElection, "_vote", vote)
