"""A read counts an append sent before the read arrived as proof of leadership."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import LeaderReads

TESTS = ["tests/unit/sql/engine/test_leadership.py::test_a_read_waits_for_an_append_sent_after_it_arrived"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = LeaderReads.run

    async def run(self: LeaderReads) -> None:
        noop = self._append_noop

        async def also_those_that_came_meanwhile() -> None:
            await noop()
            for proof in self._confirmation.close():
                if not proof.done():
                    proof.set_result(None)

        patch(self, "_append_noop", also_those_that_came_meanwhile)
        await original(self)

    patch(LeaderReads, "run", run)
