"""A client of Redis may announce any number of words, of any size."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.resp.core.resp_requests import RequestBuffer, WordLimits

TESTS = [
    "tests/unit/kv/resp/core/test_resp_requests.py::test_a_size_is_refused_before_its_bytes_arrive",
    "tests/unit/kv/resp/core/test_resp_requests.py::test_a_stranger_may_send_short_requests_only",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = RequestBuffer.next_request

    def next_request(buffer: RequestBuffer) -> list[bytes] | None:
        buffer.limits = WordLimits(2**60, 2**60)
        return right(buffer)

    patch(RequestBuffer, "next_request", next_request)
