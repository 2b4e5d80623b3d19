"""A full table forgets a producer whose records are on their way: a repetition of them is appended once more."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/core/test_producer_table.py::test_a_full_table_forgets_no_producer_whose_records_are_on_their_way"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.producer_table import _Known

    patch(_Known, "is_settled", property(lambda self: True))
