"""A connection serves all messages of a chunk before any other connection has its turn."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import conversation, copy_in

TESTS = ["tests/unit/sql/pg/protocol/test_conversation_chunks.py::test_a_chunk_of_many_messages_leaves_turns_to_other_connections"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    for module in (conversation, copy_in):
        patch(module, "TURN_COST", 10**9)
