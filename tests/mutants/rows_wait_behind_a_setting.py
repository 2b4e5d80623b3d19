"""A follower applies a setting before the row operations that precede it in the log."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/storage/test_applier.py::test_rows_before_a_setting_are_applied_before_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.records import RowRun, SettingChange, Transaction
    from triplicate.sql.storage.applier import Applier

    original = Applier._apply_transaction

    def apply_transaction(self: Applier, transaction: Transaction, first_offset: int) -> None:
        for operation in transaction.operations:
            if isinstance(operation, SettingChange):
                self._apply_setting(operation)
            elif isinstance(operation, RowRun):
                self._apply_rows(operation, first_offset)
            else:
                original(self, Transaction(transaction.number, [operation]), first_offset)

    patch(Applier, "_apply_transaction", apply_transaction)
