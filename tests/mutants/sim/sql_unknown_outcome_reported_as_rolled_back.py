"""A transaction whose append has an unknown outcome is reported as a serialization failure without effect."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("transactions_happen_once",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import SqlError
    from triplicate.sql.engine.leadership import Leadership

    def as_failed(self: Leadership, number: int) -> SqlError:
        return SqlError("40001", "could not serialize access; run the transaction again")

    patch(Leadership, "_unknown", as_failed)
