"""The Describe within a round is not answered."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.conversation import Conversation
from triplicate.sql.pg.protocol.prepared_statements import PreparedStatement
from triplicate.sql.pg.protocol.rounds import Round

TESTS = ["tests/unit/sql/pg/protocol/test_rounds.py::test_a_round_is_answered_as_its_messages_are"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    serve = Conversation._serve_round

    async def without_description(self: Conversation, found: Round, statement: PreparedStatement) -> None:
        found.is_described = False
        await serve(self, found, statement)

    patch(Conversation, "_serve_round", without_description)
