"""A publisher whose node was deleted counts as new, so its last batch can be published again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.publishing import publication
from triplicate.log.store.head_store import HeadStore

TESTS = [
    "tests/unit/log/publishing/test_publishers.py::test_a_batch_of_a_forgotten_publisher_is_refused_by_name",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def anything_goes(store: HeadStore, name: str, application: str, batch: int) -> None:
        return

    patch(publication, "check_not_forgotten", anything_goes)
