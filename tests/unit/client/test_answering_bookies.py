"""The bookies that answer: any answer counts, a silent bookie is not waited for longer than needed, and nothing is fenced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from triplicate.wire import ReadRequest, Status

WIRES = pytest.mark.parametrize("wire", ["v2", "v3"])


def at_least(count: int) -> Callable[[Collection[str]], bool]:
    return lambda answered: len(answered) >= count


@WIRES
def test_refusals_count_as_answers_and_nothing_is_fenced(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, wire=wire)) as client:
            writer = await client.create()
            await writer.append(b"x")
            cluster["b"].when(ReadRequest, Status.NO_LEDGER)
            cluster["c"].when(ReadRequest, Status.IO_ERROR)
            assert await client.bookies_answer(writer.ledger_id, ["a", "b", "c"], at_least(3))
            assert cluster.fenced(writer.ledger_id) == []
            assert await writer.append(b"y") == 1

    run(main())


@WIRES
def test_bookies_that_are_down_or_silent_do_not_count(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, wire=wire)) as client:
            writer = await client.create()
            await cluster["a"].stop()
            cluster["b"].when(ReadRequest, "drop")
            assert not await client.bookies_answer(writer.ledger_id, ["a", "b", "c"], at_least(2))
            assert await client.bookies_answer(writer.ledger_id, ["a", "b", "c"], at_least(1))

    run(main())


def test_a_silent_bookie_is_not_waited_for_when_the_others_suffice() -> None:
    async def main() -> None:
        patient = replace(QUICK, read_timeout_s=3600.0)
        async with fake_cluster() as cluster, cluster.client(patient) as client:
            writer = await client.create()
            cluster["b"].when(ReadRequest, "hold")
            async with asyncio.timeout(20):
                assert await client.bookies_answer(writer.ledger_id, ["a", "b", "c"], at_least(2))
                assert not await client.bookies_answer(writer.ledger_id, ["a"], at_least(2))
                assert not await client.bookies_answer(writer.ledger_id, [], at_least(1))

    run(main())
