"""Counters of AUTOINCREMENT are not logged; followers derive them from the rows inserted."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("copies_are_equal",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.executor.change_capture import ChangeCapture

    def nothing(self: ChangeCapture, mark: int, before: dict[str, int]) -> dict[str, int]:
        return before

    patch(ChangeCapture, "end_transaction", nothing)
