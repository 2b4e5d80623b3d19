"""The poll of the SQLite driver counts writes as seen that came after its check, so no watch reports them."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers.sqlite_poll import SqlitePoll

TESTS = ["tests/unit/metadata/drivers/test_sqlite_poll.py::test_a_write_after_the_check_is_reported_by_the_next_one"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def seen(self: SqlitePoll, _: int | None) -> None:
        self._seen_version = self.version()

    patch(SqlitePoll, "seen", seen)
