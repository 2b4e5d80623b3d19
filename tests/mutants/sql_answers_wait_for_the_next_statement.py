"""The answer to a query is sent only when the next statement of the same chunk, which waits, has been answered too."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.message_stream import MessageStream

TESTS = ["tests/unit/sql/pg/protocol/test_conversation_chunks.py::test_an_answer_is_sent_before_the_next_statement_waits"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(MessageStream, "flush_due", lambda stream: None)
