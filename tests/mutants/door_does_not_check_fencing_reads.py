"""A fencing read needs no right to write."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_frame_processor_rights.py::test_a_role_allows_its_requests_and_no_others"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server import frame_processor
    from triplicate.bookie.server.request_processor import is_journaled
    from triplicate.wire import BatchReadRequest, ReadRequest, Request

    def writes(request: Request) -> bool:
        return is_journaled(request) and not isinstance(request, ReadRequest | BatchReadRequest)

    patch(frame_processor, "writes", writes)
