"""A writer records a publisher's last batch after the roll that lists it, not in the same transaction."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/publishing/test_publication_interrupted.py::test_a_publish_interrupted_at_any_step_is_listed_once[killed_after_it-writer]"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.head import LogSegment
    from triplicate.log.publishing.request_server import RequestServer
    from triplicate.log.store.head_store import StoredHead
    from triplicate.metadata import CreateNode, SetData, TreeOperation

    admit, examine = RequestServer.admit, RequestServer._examine
    later: list[TreeOperation] = []

    async def without(self: RequestServer, stored: StoredHead, first_offset: int) -> tuple[list[LogSegment], list[TreeOperation]]:
        segments, operations = await admit(self, stored, first_offset)
        publishers = [item for item in operations if isinstance(item, CreateNode | SetData) and "/publishers/" in item.path]
        later.extend(publishers)
        return segments, [operation for operation in operations if operation not in publishers]

    async def afterwards(self: RequestServer, waiting: object) -> object:
        while later:
            await self._store.tree.multi([later.pop(0)])
        return await examine(self, waiting)  # type: ignore[arg-type]

    patch(RequestServer, "admit", without)
    patch(RequestServer, "_examine", afterwards)
