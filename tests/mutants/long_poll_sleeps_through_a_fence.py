"""A fence does not wake the ledger's long polls."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_long_polls.py::test_a_poll_is_woken_by_a_fence_and_by_deletion"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.long_polls import LongPolls

    wake = LongPolls._wake

    def only_advances(self: LongPolls, ledger_id: int, advanced: bool) -> None:
        if advanced:
            wake(self, ledger_id, advanced)

    patch(LongPolls, "_wake", only_advances)
