"""An entry log counts as dead when only ledgers live in it that wait in the trash."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.index import Index

    def logs_of_present_ledgers(self: Index) -> list[int]:
        rows = self._rows("SELECT DISTINCT log FROM runs WHERE ledger NOT IN (SELECT ledger FROM missing) ORDER BY log")
        return [row[0] for row in rows]

    patch(Index, "logs_with_runs", logs_of_present_ledgers)
