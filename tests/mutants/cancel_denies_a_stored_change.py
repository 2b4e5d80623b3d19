"""A cancel that arrives after a change was stored fails its rows with 57014, which says that nothing was stored."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import portal_runner

TESTS = ["tests/unit/sql/pg/protocol/test_conversation.py::test_a_cancel_after_a_change_has_been_stored_comes_too_late"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(portal_runner, "CHANGES", ())
