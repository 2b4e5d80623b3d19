"""A copy that is for reading only stands for election."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/hosting/test_leader_moves.py::test_a_read_only_copy_never_leads"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.hosting.hosted_database import HostedDatabase

    patch(HostedDatabase, "_lead_delay_s", lambda self: 0.0)
