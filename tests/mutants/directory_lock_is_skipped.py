"""A node does not lock its directory."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime.real_disk import RealDisk

TESTS = ["tests/unit/replica/test_node_registration_names.py::test_a_directory_belongs_to_one_process"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def unlocked(self: RealDisk, path: str) -> Callable[[], None]:
        self.open(path, create=True).close()
        return lambda: None

    patch(RealDisk, "lock", unlocked)
