"""A leader's commit runs the checkpoint that is due, so the event loop waits for the sync of the database's file."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.storage.wal_checkpointer import WalCheckpointer

TESTS = ["tests/unit/sql/engine/test_writer_thread.py::test_a_checkpoint_and_the_commit_that_begins_the_log_again_run_on_the_thread"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    committed = WalCheckpointer._committed

    def at_once(self: WalCheckpointer, connection: apsw.Connection, pages: int, page_bytes: int, *, defers: bool) -> int:
        return committed(self, connection, pages, page_bytes, defers=False)

    patch(WalCheckpointer, "_committed", at_once)
