"""A log device reports a group as durable that was written but not synced."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import File, Group, real_disk

TESTS = ["tests/unit/runtime/test_real.py::test_what_gathers_while_a_group_is_written_forms_the_next_group"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    run = real_disk.RealLogDevice.__init__

    def init(device: real_disk.RealLogDevice[object], name: str, form: Callable, done: Callable, failed: Callable) -> None:  # type: ignore[type-arg]
        class Unsynced:
            def __init__(self, file: File) -> None:
                self.pwrite = file.pwrite

            def sync(self) -> None:
                return None

        def form_unsynced(items: list[object]) -> tuple[Group, int]:
            group, count = form(items)
            return Group(Unsynced(group.file), group.offset, group.buffers), count  # type: ignore[arg-type]

        run(device, name, form_unsynced, done, failed)

    patch(real_disk.RealLogDevice, "__init__", init)
