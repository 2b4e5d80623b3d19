"""The node of an owner stays where its claim was cancelled: nobody else opens the log, or its consumer, until the session ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = [
    "tests/unit/log/test_logs_take_over.py::test_an_opening_that_is_cancelled_at_its_claim_shuts_nobody_out",
    "tests/unit/log/test_consumers.py::test_an_opening_that_is_cancelled_at_its_claim_shuts_nobody_out",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.store import ownership
    from triplicate.log.store.consumer_nodes import ConsumerNodes

    async def keep(*_: Any) -> None:
        pass

    patch(ownership, "release", keep)
    patch(ConsumerNodes, "release", keep)
