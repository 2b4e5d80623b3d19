"""A writer that has listed a batch keeps the request, and lists the batch again at its next roll."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/publishing/test_request_server.py::test_a_living_writer_lists_what_is_published_between_its_records"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import LogSegment
    from triplicate.log.publishing.publication import Publication, PublishResult
    from triplicate.log.publishing.request_server import RequestServer
    from triplicate.log.store.head_store import StoredHead
    from triplicate.metadata import DeleteNode, TreeOperation

    admit, find = RequestServer.admit, Publication.find

    async def again(self: RequestServer, stored: StoredHead, first_offset: int) -> tuple[list[LogSegment], list[TreeOperation]]:
        segments, operations = await admit(self, stored, first_offset)
        return segments, [operation for operation in operations if not isinstance(operation, DeleteNode)]

    async def never_there(
        self: Publication, stored: StoredHead, *, attempted: bool = False, requested: bool = False
    ) -> PublishResult | None:
        return await find(self, stored, attempted=attempted, requested=requested) if attempted else None

    async def unmarked(self: Publication, stored: StoredHead, first: int) -> list[TreeOperation]:
        return []

    patch(RequestServer, "admit", again)
    patch(Publication, "find", never_there)
    patch(Publication, "operations", unmarked)
