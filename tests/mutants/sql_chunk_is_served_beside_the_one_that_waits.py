"""A chunk that arrives while a statement waits is served at once, beside it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.conversation import Conversation

TESTS = ["tests/unit/sql/pg/protocol/test_conversation_chunks.py::test_an_answer_is_sent_before_the_next_statement_waits"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    advance = Conversation._advance

    def advance_always(conversation: Conversation) -> None:
        conversation._is_working = False
        advance(conversation)

    patch(Conversation, "_advance", advance_always)
