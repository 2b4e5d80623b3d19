"""A slow bookie is given up although no other one can take its place."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.write import ensemble_changer

TESTS = ["tests/unit/client/write/test_ensemble_changer_slow_bookie.py::test_without_a_spare_the_slow_bookie_stays"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ensemble_changer, "is_replaceable", lambda *arguments: True)
