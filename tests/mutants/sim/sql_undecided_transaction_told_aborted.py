"""pg_xact_status reports "aborted" for a transaction that recovery has not decided yet."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("transactions_happen_once",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.column_codec import Value
    from triplicate.sql.executor.transaction_functions import TransactionContext

    original = TransactionContext.status

    def status(self: TransactionContext, connection: object, identity: Value) -> str | None:
        found = original(self, connection, identity)  # type: ignore[arg-type]
        return "aborted" if found == "in progress" else found

    patch(TransactionContext, "status", status)
