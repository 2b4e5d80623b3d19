"""An offset that is no integer is taken: a log is truncated at a fraction, which its head keeps for ever."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/writing/test_log_writer_refused_values.py::test_offsets_and_numbers_of_producers_are_integers"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.upkeep import truncation

    patch(truncation, "check_offset", lambda offset: offset)
