"""A leader answers reads without checking that it still leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.replica import LeaderReads

TESTS = ["tests/unit/sql/hosting/test_database_node.py::test_a_deposed_leader_serves_no_read"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def at_once(self: LeaderReads) -> asyncio.Future[None]:
        proof: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        proof.set_result(None)
        return proof

    patch(LeaderReads, "proof", at_once)
