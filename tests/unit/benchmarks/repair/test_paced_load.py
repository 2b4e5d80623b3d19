"""Appends at a fixed rate, whose latencies are delivered once."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.repair.paced_load import PacedCommands
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import real_cluster
from tests.waiting import eventually

QUORUMS = {"ensemble_size": 3, "write_quorum": 3, "ack_quorum": 2}


def test_latencies_are_delivered_once_until_the_appends_rest() -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client() as client:
            commands = PacedCommands(client)

            async def ask(do: str, **arguments: Any) -> dict[str, Any]:
                return await commands.run({"do": do, **arguments})

            (ledger,) = (await ask("create", count=1, **QUORUMS))["ledgers"]
            await ask("pace", ledger=ledger, size=64, rate=500)
            found: list[int] = []

            async def enough() -> bool:
                found.extend((await ask("latencies", ledger=ledger))["latencies_ns"])
                return len(found) >= 20

            while not await enough():
                await eventually(lambda: bool(commands.acknowledged(ledger)))
            assert min(found) > 0
            await ask("rest", ledger=ledger)
            with pytest.raises(KeyError):
                await ask("latencies", ledger=ledger)
            await ask("close")

    run(main())
