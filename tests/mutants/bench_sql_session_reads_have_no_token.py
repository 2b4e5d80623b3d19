"""Reads at level session are measured without the position that a client would hand over, so that they never wait."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.sql.levels import LevelOfReads

TESTS = ["tests/unit/benchmarks/sql/test_levels.py::test_only_the_level_of_sessions_takes_the_token"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(LevelOfReads, "options", lambda self, position: f"-c triplicate.read_level={self.name}")
