"""A publish looks through the whole list for its ledgers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.log import publishing
from triplicate.log.store import HeadStore, Stored

TESTS = [
    "tests/unit/log/test_publish_cost.py::test_a_publish_reads_as_much_of_a_long_log_as_of_a_short_one[settings0-app]",
    "tests/unit/log/test_publish_cost.py::test_questions_about_a_ledger_read_no_pages",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    listed_among = publishing.listed_among

    async def all_of_it(store: HeadStore, name: str, stored: Stored, *evidence: Any) -> Any:
        await store.listed(name, stored)
        return await listed_among(store, name, stored, *evidence)

    patch(publishing, "listed_among", all_of_it)
