"""Connections without memory for a frame continue to be read."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.server.budgets import FrameBudget, Receiving

TESTS = ["tests/unit/bookie/server/test_budgets.py::test_unfinished_frames_of_all_connections_have_one_bound_and_all_are_served_in_the_end"]


def pause(self: FrameBudget, connection: Receiving) -> None:
    """It is read on."""


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(FrameBudget, "_pause", pause)
