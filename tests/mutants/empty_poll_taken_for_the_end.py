"""A long poll that is answered without an entry counts as the end of the ledger."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/client/read/test_long_poll.py::test_an_answer_without_an_entry_is_not_the_end"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.read.long_poll import LongPoller
    from triplicate.client.read.tail import Tail

    wait = LongPoller.wait

    async def ends(self: Tail) -> None:
        entry = await wait(self._poller, self._next)
        if entry is None:
            self._closed = True
        else:
            self._next += 1
            self._ready.append(entry)

    patch(Tail, "_wait", ends)
