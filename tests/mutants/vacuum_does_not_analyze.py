"""VACUUM ANALYZE does nothing."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import commands

TESTS = ["tests/unit/sql/pg/protocol/test_commands.py::test_vacuum_is_the_analyze_in_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(commands, "parse_vacuum", lambda _: "")
