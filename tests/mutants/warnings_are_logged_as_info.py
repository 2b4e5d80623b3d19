"""Every trace is logged as information, so no alert can go by the level."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

TESTS = [
    "tests/unit/cli/process/test_serving_log_levels.py::test_a_log_of_warnings_shows_trouble[replica.diverged-ERROR]",
    "tests/unit/cli/process/test_serving_log_levels.py::test_a_log_of_warnings_shows_trouble[log.take_over_lost-WARNING]",
]


def level_of(kind: str, facts: Mapping[str, object]) -> int:
    return logging.INFO


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.process import serving

    patch(serving, "level_of", level_of)
