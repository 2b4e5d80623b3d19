"""Statements of any length are tokenized and translated on the event loop, which stalls other sessions."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import plans

TESTS = ["tests/unit/sql/pg/protocol/test_plans.py::test_every_step_over_a_long_text_leaves_the_loop_free"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def at_once(session: object, sql: str, function: Callable[..., object], *arguments: object) -> object:
        return function(*arguments)

    patch(plans, "aside_if_long", at_once)
