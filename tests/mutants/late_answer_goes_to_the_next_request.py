"""Over version 3 an answer is matched by its kind instead of its transaction id."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/client/connection/test_bookie_channel.py::test_every_request_of_version_3_gets_its_own_answer"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.connection.exchange import ANSWERS, PendingRequest, V3Exchange
    from triplicate.wire import Response

    def by_kind(self: V3Exchange, number: int, response: Response, now: float) -> tuple[list[PendingRequest], bytes | None]:
        for known, pending in self._calls.items():
            if type(response) is ANSWERS[type(pending.request)]:
                del self._calls[known]
                return [pending], None
        return [], None

    patch(V3Exchange, "match", by_kind)
