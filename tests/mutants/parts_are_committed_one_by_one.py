"""A follower commits each part of a transaction, so its readers see a part of it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage.applier import Applier

TESTS = [
    "tests/unit/sql/storage/test_applier.py::test_a_transaction_in_parts_is_seen_with_its_last_part",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = Applier.commit

    def commit(self: Applier) -> None:
        lacking, self._open = self._open, None
        honest(self)
        self._open = lacking
        if lacking is not None:
            self._connection.execute("begin immediate")

    patch(Applier, "commit", commit)
