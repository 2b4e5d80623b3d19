"""An entry log counts as dead if all its live ledgers are in the trash."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("bookies", "undeleted_ledgers_are_whole", "acknowledged_is_readable", "closed_entries_have_their_copies")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.index import Index

    def lives_in(self: Index, log: int) -> tuple[bool, bool]:
        runs = self._rows("SELECT 1 FROM runs WHERE log = ? AND ledger NOT IN (SELECT ledger FROM missing) LIMIT 1", (log,))
        return bool(runs), bool(self._rows("SELECT 1 FROM ledgers WHERE log = ? LIMIT 1", (log,)))

    patch(Index, "lives_in", lives_in)
