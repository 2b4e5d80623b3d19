"""A disk of an earlier incarnation is used when it comes back."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.directories import Directories

TESTS = ["tests/unit/bookie/offline/test_replacement.py::test_the_old_disk_is_refused_when_it_comes_back"]


def incarnation_in(self: Directories, directory: str) -> int:
    return 2


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Directories, "incarnation_in", incarnation_in)
