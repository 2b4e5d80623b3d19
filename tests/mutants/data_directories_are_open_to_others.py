"""The directories above a new one of a bookie or node are open to every user of the machine."""

from __future__ import annotations

import os
from collections.abc import Callable

from triplicate.runtime import real_disk

TESTS = [
    "tests/unit/runtime/test_real_disk.py::test_what_the_disk_makes_is_private_whatever_the_umask",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(real_disk, "_make_private", lambda path: os.makedirs(path, 0o700, exist_ok=True))
