"""A query in a transaction is planned by its shape first, so an error in it fails the transaction before the query's own plan is made."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Session
from triplicate.sql.pg.protocol import conversation
from triplicate.sql.pg.protocol.plans import PlanCache, split_query
from triplicate.sql.pg.protocol.prepared_statements import Portal, prepare_statement
from triplicate.sql.pg.protocol.query_shapes import shape_of
from triplicate.sql.pg.values import types

TESTS = [
    "tests/unit/sql/pg/protocol/test_query_shapes.py::test_a_wrong_query_fails_its_transaction_by_its_own_error",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def portal_of_shape(session: Session, sql: str, cache: PlanCache) -> Portal | None:
        shape = shape_of(sql)
        if shape is None:
            return None
        text = (await split_query(session, shape.text))[0]
        try:
            statement = await prepare_statement(session, text, (types.INT4,) * len(shape.constants), cache, is_fixed=False)
        except SqlError:
            return None
        return Portal(statement, shape.constants, ())

    patch(conversation, "portal_of_shape", portal_of_shape)
