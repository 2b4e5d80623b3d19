"""Files of bookies and nodes are readable by every user of the machine."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import real_disk

TESTS = [
    "tests/unit/runtime/test_real_disk.py::test_what_the_disk_makes_is_private_whatever_the_umask",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(real_disk, "PRIVATE_FILE", 0o644)
