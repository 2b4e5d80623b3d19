"""pg_xact_status calls a transaction aborted that is not in the copy yet, though recovery has not decided."""

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
