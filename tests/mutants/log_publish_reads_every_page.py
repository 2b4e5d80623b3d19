"""A publish reads every page of the list to look for its ledgers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.log.publishing import publication
from triplicate.log.store.head_store import HeadStore, StoredHead

TESTS = [
    "tests/unit/log/publishing/test_publication_cost.py::test_a_publish_reads_as_much_of_a_long_log_as_of_a_short_one[settings0-app]",
    "tests/unit/log/publishing/test_publication_cost.py::test_questions_about_a_ledger_read_no_pages",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    listed_among = publication.listed_among

    async def all_of_it(store: HeadStore, name: str, stored: StoredHead, *evidence: Any) -> Any:
        await store.listed(name, stored)
        return await listed_among(store, name, stored, *evidence)

    patch(publication, "listed_among", all_of_it)
