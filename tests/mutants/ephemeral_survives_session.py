"""The ephemeral nodes of a session stay when it ends, so a dead bookie looks alive for ever."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import sqlite_store

TESTS = ["tests/unit/metadata/core/test_tree_contract.py::test_ephemeral_nodes_vanish_when_their_session_closes[sqlite]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def remove_row_only(store: sqlite_store.SqliteStore, session_id: int) -> None:
        store._execute("DELETE FROM sessions WHERE id = ?", session_id)

    patch(sqlite_store.SqliteStore, "_remove_session", remove_row_only)
