"""A deletion that ended among the nodes of a log is not finished by the next one, which looks for the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/store/test_head_store_identity.py::test_a_deletion_that_ended_among_the_nodes_is_finished_by_another"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head_changes import all_segments
    from triplicate.log.upkeep import truncation

    async def listed_by(store: Any, name: str, head: Any) -> list[int]:
        return [segment.ledger_id for segment in all_segments(head, await store.pages(name, head))]

    patch(truncation, "_listed_by", listed_by)
