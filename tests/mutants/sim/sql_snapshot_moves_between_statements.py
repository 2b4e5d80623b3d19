"""A reading transaction sees, statement by statement, what is there by then, not one snapshot."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.readers import Reader
    from triplicate.sql.store import read_state

    def begin(self: Reader) -> int:
        return read_state(self.connection()).position

    patch(Reader, "begin", begin)
