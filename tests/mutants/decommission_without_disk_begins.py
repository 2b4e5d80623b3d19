"""A decommission begins although the bookies that remain have no disk for the copies."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import DiskRoom

TESTS = ["tests/unit/autorecovery/test_decommission.py::test_a_decommission_whose_copies_do_not_fit_is_refused_with_numbers"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(DiskRoom, "is_too_small", property(lambda self: False))
