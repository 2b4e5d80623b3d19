"""Raising the copies of the segments of all logs."""

from __future__ import annotations

import asyncio

from tests.unit.client.cluster import QUICK, fake_cluster, run
from tests.waiting import LIMIT_S, eventually
from triplicate.client import LedgerWriter
from triplicate.errors import CorruptionError
from triplicate.log import Logs, LogSettings, LogWriter, Quorums, raise_all_copies


async def until_it_misses(writer: LogWriter, bookie_id: str) -> None:
    ledger = writer._ledger
    assert isinstance(ledger, LedgerWriter)
    await eventually(lambda: ledger.missing_bookies == (bookie_id,))


def test_reduced_segments_of_every_log_get_all_copies_when_the_bookie_is_back() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(QUICK) as client:
            logs = Logs(client)
            for name in ("k", "l"):
                await logs.create(name, LogSettings())
                async with await logs.writer(name, owner="w") as writer:
                    await writer.append(b"1")
                    await cluster["c"].stop()
                    await writer.append(b"2")
                    # Two bookies acknowledge the record; the loss of the third may be noticed later.
                    await until_it_misses(writer, "c")
                (segment,) = await logs.segments(name)
                assert segment.reduced == Quorums(3, 2)
                assert await raise_all_copies(logs) == 0
                await cluster.restart("c")
                async with asyncio.timeout(LIMIT_S):
                    while not await raise_all_copies(logs):
                        await asyncio.sleep(0.02)
                (segment,) = await logs.segments(name)
                assert segment.reduced is None

    run(main())


def test_a_log_that_fails_does_not_stop_the_others() -> None:
    class FailingLogs(Logs):
        async def raise_copies(self, name: str, *, limit: int | None = None) -> object:  # type: ignore[override]
            raised.append(name)
            raise CorruptionError("damaged")

    raised: list[str] = []

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            logs = FailingLogs(client)
            for name in ("k", "l"):
                await logs.create(name, LogSettings())
            assert await raise_all_copies(logs) == 0
            assert raised == ["k", "l"]
            assert [facts["log"] for facts in cluster.told("log.copies_not_raised")] == ["k", "l"]

    run(main())
