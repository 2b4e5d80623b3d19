"""A publish does not update the ledgers that it lists, so a later reader of their metadata cannot see that they are listed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.publishing.publication import Candidates
from triplicate.log.store.head_store import StoredHead
from triplicate.metadata import TreeOperation

TESTS = [
    "tests/unit/log/publishing/test_publication_cost.py::test_a_ledger_that_is_published_elsewhere_meanwhile_is_published_once",
    "tests/unit/log/publishing/test_publication.py::test_a_publish_without_application_is_repeated_without_harm",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def unmarked(self: Candidates, stored: StoredHead, first: int) -> list[TreeOperation]:
        return []

    patch(Candidates, "marks", unmarked)
