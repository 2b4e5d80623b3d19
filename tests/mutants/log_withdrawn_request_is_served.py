"""A writer lists what a publisher asked for without a look whether the request is still there."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_admissions.py::test_a_request_that_was_withdrawn_is_not_served"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.admissions import Admissions
    from triplicate.log.core.head import Segment
    from triplicate.log.store import Stored
    from triplicate.metadata import Delete, Operation

    admit = Admissions.admit

    async def blindly(self: Admissions, stored: Stored, first_offset: int) -> tuple[list[Segment], list[Operation]]:
        segments, operations = await admit(self, stored, first_offset)
        return segments, [operation for operation in operations if not isinstance(operation, Delete)]

    patch(Admissions, "admit", blindly)
