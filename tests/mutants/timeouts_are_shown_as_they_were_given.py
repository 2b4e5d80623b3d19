"""SHOW shows a timeout without the unit that PostgreSQL adds."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import settings

TESTS = ["tests/unit/sql/pg/protocol/test_settings.py::test_a_timeout_is_shown_with_its_unit"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(settings, "_TIMEOUTS", frozenset())
