"""Only "no entry" and "no ledger" deny anything. Every other status, and silence, leaves it unknown, over either version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES
from triplicate.errors import NoSuchEntry, ReadFailed, TriplicateError, Unauthorized
from triplicate.wire import BatchReadRequest, ListEntriesRequest, ReadLacRequest, ReadRequest, Status

SETTINGS = {"v2 batches": QUICK, "v2 single": replace(QUICK, batch_read=False), "v3": replace(QUICK, wire="v3")}
ANSWERS: list[Status | str] = [*(status for status in Status if status is not Status.OK), "drop", "close"]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("wire", SETTINGS)
def test_only_an_explicit_negative_of_every_replica_denies_an_entry(wire: str, answer: Status | str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(SETTINGS[wire]) as client:
            writer = await client.create()
            await writer.append_many([b"0", b"1"])
            reader = await client.open(writer.ledger_id)
            for kind in (ReadRequest, BatchReadRequest):
                cluster["c"].when(kind, answer)
            expected = NoSuchEntry if answer in EXPLICIT_NEGATIVES else ReadFailed
            with pytest.raises(expected):
                await reader.read_unconfirmed(5, 7)
            if answer in EXPLICIT_NEGATIVES:
                assert await reader.read_from("c", 0) is None
            else:
                with pytest.raises(TriplicateError):
                    await reader.read_from("c", 0)

    run(main())


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("wire", ["v2 batches", "v3"])
def test_only_an_explicit_negative_counts_towards_coverage(wire: str, answer: Status | str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(SETTINGS[wire]) as client:
            writer = await client.create()
            await writer.append_many([b"0", b"1"])
            reader = await client.open(writer.ledger_id)
            for name in "bc":
                for kind in (ReadRequest, ReadLacRequest, ListEntriesRequest):
                    cluster[name].when(kind, answer)
            questions = (reader.read_last_confirmed, reader.read_explicit_last_confirmed)
            for question in questions:
                if answer in EXPLICIT_NEGATIVES:
                    await question()
                else:
                    with pytest.raises(Unauthorized if answer is Status.UNAUTHORIZED else ReadFailed):
                        await question()
            if answer in EXPLICIT_NEGATIVES:
                assert (await reader.entries_on("b")).count == 0
            else:
                with pytest.raises(TriplicateError):
                    await reader.entries_on("b")

    run(main())
