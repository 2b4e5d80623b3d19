"""A batch whose first entry fails its digest is not read from another replica, and no error is raised (BookKeeper issue 4789)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("progress",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.read.batch_read import BatchRead
    from triplicate.errors import BookieError
    from triplicate.wire import BatchAnswer, Status

    answered = BatchRead._answered

    def forgetful(self: BatchRead, bookie_id: str, response: BatchAnswer | None, error: BookieError | None) -> None:
        if response is not None and response.status is Status.OK and self._process(response) is not None and not self.entries:
            self._stop_hedging()
            return
        if not self._is_over:
            self.entries.clear()
        answered(self, bookie_id, response, error)

    patch(BatchRead, "_answered", forgetful)
