"""A requested ledger that was swept makes every roll fail."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/publishing/test_request_server.py::test_a_ledger_that_is_swept_before_the_roll_harms_neither_the_writer_nor_others"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing.publication import Publication, PublishResult
    from triplicate.log.publishing.request_server import RequestServer
    from triplicate.log.store.head_store import StoredHead

    find = Publication.find

    async def found(self: Publication, stored: StoredHead, *, requested: bool = False) -> PublishResult | None:
        return await find(self, stored, requested=requested) if requested or not self.segments else None

    patch(RequestServer, "discard_ready", lambda self: False)
    patch(Publication, "find", found)
