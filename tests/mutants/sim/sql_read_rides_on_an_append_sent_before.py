"""A read takes an append for proof of leadership that was sent before the read arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.leadership import Leadership
    from triplicate.sql.writer import Pending

    original = Leadership._append_and_commit

    async def append_and_commit(self: Leadership, pending: Pending) -> None:
        await original(self, pending)
        waiting: list[asyncio.Future[None]] = self._waiting_reads
        for proof in waiting:
            if not proof.done():
                proof.set_result(None)

    patch(Leadership, "_append_and_commit", append_and_commit)
