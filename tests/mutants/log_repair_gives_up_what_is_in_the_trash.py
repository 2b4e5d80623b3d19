"""A repair gives up ledgers that could still be undeleted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.upkeep.repair import Examination

TESTS = ["tests/unit/log/upkeep/test_repair.py::test_what_is_in_the_trash_is_brought_back_and_not_given_up"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Examination, "recoverable", ())
