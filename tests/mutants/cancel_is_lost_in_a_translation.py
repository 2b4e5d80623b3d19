"""A cancel, or a statement_timeout, that comes while a long text is translated is forgotten, and the statement runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

TESTS = ["tests/unit/sql/engine/test_session.py::test_a_cancel_is_not_lost_while_a_long_text_is_translated"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine import session

    async def unless_stopped(_stop: object, work: Awaitable[object]) -> object:
        return await work

    patch(session, "unless_stopped", unless_stopped)
