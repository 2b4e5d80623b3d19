"""A handover that is cancelled while it makes its request leaves it, and no other one is accepted while the session lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/replica/test_leader_handover.py::test_a_call_that_is_cancelled_while_it_makes_its_request_leaves_none"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica import leader_handover

    async def keep(*_: Any) -> None:
        pass

    patch(leader_handover, "_withdraw", keep)
