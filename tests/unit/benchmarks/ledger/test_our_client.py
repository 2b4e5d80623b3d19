"""The commands of our client under measurement, on real bookies."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from benchmarks.ledger import our_client
from benchmarks.ledger.our_client import Commands, Rated
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import real_cluster
from triplicate import LedgerReader
from triplicate.config import ClientSettings
from triplicate.errors import ArgumentError

QUORUMS = {"ensemble_size": 3, "write_quorum": 3, "ack_quorum": 2}


def test_ledgers_are_made_filled_read_and_recovered() -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client() as client:
            commands = Commands(client)

            async def ask(do: str, **arguments: Any) -> dict[str, Any]:
                return await commands.run({"do": do, **arguments})

            ledgers = (await ask("create", count=3, **QUORUMS))["ledgers"]
            assert len(set(ledgers)) == 3
            await ask("append_count", ledgers=ledgers, size=50, count=700, window=100)
            await ask("close")
            for batch in (False, True):
                figures = await ask("read", ledger=ledgers[1], batch=batch, chunk=90)
                assert (figures["entries"], figures["bytes"]) == (700, 700 * 50)
            assert (await ask("recover", ledger=ledgers[2]))["last_entry_id"] == 699

    run(main())


def test_a_reading_stops_when_its_time_is_over_and_counts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client() as client:
            commands = Commands(client)
            (ledger,) = (await commands.run({"do": "create", "count": 1, **QUORUMS}))["ledgers"]
            await commands.run({"do": "append_count", "ledgers": [ledger], "size": 50, "count": 700, "window": 100})
            await commands.run({"do": "close"})
            answers = 0
            at_once: list[int] = []

            async def slowly(reader: LedgerReader, first: int, last: int) -> tuple[int, int]:
                nonlocal answers
                at_once.append(len(at_once) - answers)
                await asyncio.sleep(0.1)
                answers += 1
                return last - first + 1, 0

            monkeypatch.setattr(our_client, "_ranges", slowly)
            command = {"do": "read", "ledger": ledger, "batch": False, "chunk": 10}
            figures = await commands.run({**command, "seconds": 0.35})
            # Four at once, nothing asked for when the time is over, and no answer counted that comes after it.
            assert answers < 30
            assert max(at_once) < our_client.READS_AT_ONCE
            assert figures["stopped"]
            assert 0 < figures["entries"] <= 10 * (answers - 1) < 700
            assert figures["seconds"] == pytest.approx(0.35)
            assert figures["per_s"] == pytest.approx(figures["entries"] / 0.35)
            whole = await commands.run({**command, "chunk": 350})
            assert (whole["entries"], whole["stopped"]) == (700, False)

    run(main())


@pytest.mark.parametrize("window", [1, 6])
def test_appends_are_counted_over_all_ledgers(window: int) -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client() as client:
            commands = Commands(client)
            ledgers = (await commands.run({"do": "create", "count": 2, **QUORUMS}))["ledgers"]
            command = {"do": "append", "ledgers": ledgers, "size": 10, "window": window, "seconds": 0.1}
            figures = await commands.run(command)
            held = [(await client.recover(ledger)).last_add_confirmed + 1 for ledger in ledgers]
            assert figures["count"] == sum(held) > 0
            assert held[1] > 0 or window == 1

    run(main())


def test_a_tail_counts_from_the_instant_at_which_an_append_was_due() -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client(ClientSettings(explicit_lac_interval_s=0.001)) as client:
            commands = Commands(client)
            (ledger,) = (await commands.run({"do": "create", "count": 1, **QUORUMS}))["ledgers"]
            command = {"do": "append_rate", "ledgers": [ledger], "size": 20, "rate": 500}
            await commands.run({**command, "count": 10})
            tailing = asyncio.create_task(commands.run({"do": "tail", "ledger": ledger, "first": 10, "count": 50}))
            appended = await commands.run({**command, "count": 50})
            followed = await tailing
            assert followed["count"] == appended["count"] == 50
            assert 0 < appended["p50_ms"] <= followed["p50_ms"] < 5000

    run(main())


class StallingWriter:
    """Answers at once, but holds up the loop at the tenth append."""

    def __init__(self) -> None:
        self.sent = 0

    def append_nowait(self, payload: bytes) -> asyncio.Future[int]:
        self.sent += 1
        if self.sent == 10:
            time.sleep(0.2)
        future = asyncio.get_running_loop().create_future()
        future.set_result(self.sent)
        return future


def test_a_stall_counts_for_every_append_that_it_held_up() -> None:
    async def main() -> None:
        rated = Rated(StallingWriter(), 16, 100.0, 40)  # type: ignore[arg-type]
        await rated.run()
        # 0.2 s at 100 a second: about twenty were due meanwhile, the first of them for almost all of it.
        late = [latency for latency in rated.latencies if latency > 50_000_000]
        assert len(rated.latencies) == 40
        assert len(late) >= 14
        assert max(late) >= 150_000_000

    run(main())


class FailingWriter:
    def append_nowait(self, payload: bytes) -> asyncio.Future[int]:
        raise ArgumentError("no")


def test_a_failed_append_fails_the_measurement() -> None:
    with pytest.raises(ArgumentError):
        run(Rated(FailingWriter(), 16, 1000.0, 10).run())  # type: ignore[arg-type]
