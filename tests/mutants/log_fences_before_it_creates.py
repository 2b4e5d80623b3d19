"""A take-over fences the open segment before it knows whether it can create the next ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = [
    "tests/unit/log/writing/test_log_writer_short_of_bookies.py::test_a_take_over_that_cannot_create_its_ledger_leaves_a_healthy_writer_alone"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import logs
    from triplicate.log.store.segments import recover_segment
    from triplicate.log.writing.segment_transitions import take_over

    async def hasty(client: Any, store: Any, settings: Any, name: str, log_id: str, owner: Any, *, open_next: bool) -> Any:
        head = (await store.read(name)).head
        if head.open is not None:
            await recover_segment(client, settings, head.settings, head.open)
        return await take_over(client, store, settings, name, log_id, owner, open_next=open_next)

    patch(logs, "take_over", hasty)
