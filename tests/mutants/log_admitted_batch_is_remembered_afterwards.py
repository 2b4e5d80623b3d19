"""A writer writes down what a publisher has published after the roll that lists it, and not with it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/test_admission_steps.py::test_a_publish_that_is_struck_at_any_step_is_there_once[killed_after_it-writer]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.admissions import Admissions
    from triplicate.log.core.head import Segment
    from triplicate.log.store import Stored
    from triplicate.metadata import Create, Operation, SetData

    admit, examine = Admissions.admit, Admissions._examine
    later: list[Operation] = []

    async def without(self: Admissions, stored: Stored, first_offset: int) -> tuple[list[Segment], list[Operation]]:
        segments, operations = await admit(self, stored, first_offset)
        publishers = [item for item in operations if isinstance(item, Create | SetData) and "/publishers/" in item.path]
        later.extend(publishers)
        return segments, [operation for operation in operations if operation not in publishers]

    async def afterwards(self: Admissions, waiting: object) -> object:
        while later:
            await self._store.tree.multi([later.pop(0)])
        return await examine(self, waiting)  # type: ignore[arg-type]

    patch(Admissions, "admit", without)
    patch(Admissions, "_examine", afterwards)
