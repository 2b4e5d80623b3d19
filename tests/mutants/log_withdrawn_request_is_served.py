"""A writer lists a request's ledgers without checking that the request still exists."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/publishing/test_request_server.py::test_a_request_that_was_withdrawn_is_not_served"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import LogSegment
    from triplicate.log.publishing.request_server import RequestServer
    from triplicate.log.store.head_store import StoredHead
    from triplicate.metadata import DeleteNode, TreeOperation

    admit = RequestServer.admit

    async def blindly(self: RequestServer, stored: StoredHead, first_offset: int) -> tuple[list[LogSegment], list[TreeOperation]]:
        segments, operations = await admit(self, stored, first_offset)
        return segments, [operation for operation in operations if not isinstance(operation, DeleteNode)]

    patch(RequestServer, "admit", blindly)
