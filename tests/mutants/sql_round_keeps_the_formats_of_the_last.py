"""A Bind that differs from the one before it only in the formats of the result is served with the formats of that one."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.wire import BindShape, bind_shape

TESTS = ["tests/unit/sql/pg/protocol/test_rounds.py::test_a_round_has_the_fields_of_its_messages"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    values = BindShape.values

    def values_before_any_tail(shape: BindShape, body: bytes) -> tuple[bytes | None, ...] | None:
        if not body.startswith(shape.head):
            return None
        return values(shape._replace(tail=bind_shape(body).tail), body)

    patch(BindShape, "values", values_before_any_tail)
