"""A writer that has listed a batch keeps the request and does not look whether the batch is there: its next roll lists it again."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_admissions.py::test_a_living_writer_lists_what_is_published_between_its_records"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.admissions import Admissions
    from triplicate.log.core.head import Segment
    from triplicate.log.publishing import Publication, Published
    from triplicate.log.store import Stored
    from triplicate.metadata import Delete, Operation

    admit, find = Admissions.admit, Publication.find

    async def again(self: Admissions, stored: Stored, first_offset: int) -> tuple[list[Segment], list[Operation]]:
        segments, operations = await admit(self, stored, first_offset)
        return segments, [operation for operation in operations if not isinstance(operation, Delete)]

    async def never_there(self: Publication, stored: Stored, *, attempted: bool = False, asked: bool = False) -> Published | None:
        return await find(self, stored, attempted=attempted, asked=asked) if attempted else None

    async def unmarked(self: Publication, stored: Stored, first: int) -> list[Operation]:
        return []

    patch(Admissions, "admit", again)
    patch(Publication, "find", never_there)
    patch(Publication, "operations", unmarked)
