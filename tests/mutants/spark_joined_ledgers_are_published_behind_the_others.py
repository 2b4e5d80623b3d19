"""Joined ledgers are published behind the others, so records lose the order of partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = ["tests/unit/spark/logs/test_writing.py::test_joined_ledgers_stand_where_their_parts_stood"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import JoinResult, Logs, StagedLedger, StagingOrigin

    join_staged = Logs.join_staged

    async def behind(self: Logs, origin: StagingOrigin, ledgers: Sequence[StagedLedger], target_bytes: int) -> JoinResult:
        joined = await join_staged(self, origin, ledgers, target_bytes)
        kept = [ledger for ledger in joined.ledgers if ledger not in joined.made]
        return JoinResult((*kept, *joined.made), joined.replaced, joined.made)

    patch(Logs, "join_staged", behind)
