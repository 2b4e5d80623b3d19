"""The last entry that may have been acknowledged: who must be asked for it, and what counts."""

from __future__ import annotations

import pytest

from tests.unit.client.cluster import fake_cluster, run
from triplicate.errors import ReadFailed
from triplicate.wire import AddRequest, ReadLacRequest, ReadRequest, Status


def test_an_acknowledged_entry_counts_before_anything_says_that_it_is_confirmed() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)
            assert await reader.read_last_written() is None
            cluster["c"].when(AddRequest, "hold")
            for payload in (b"0", b"1", b"2"):
                await writer.append(payload)
            # One of the two bookies that have it is silent.
            cluster["a"].when(ReadLacRequest, "hold")
            last = await reader.read_last_written()
            assert last is not None
            assert (last.entry_id, last.payload) == (2, b"2")
            assert reader.last_add_confirmed == 1

    run(main())


def test_no_entry_is_reported_while_an_ack_quorum_may_hide_one() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            reader = await client.open(writer.ledger_id)
            for name in "ab":
                cluster[name].when(ReadLacRequest, Status.IO_ERROR)
                cluster[name].when(ReadRequest, Status.IO_ERROR)
            with pytest.raises(ReadFailed, match="too many bookies are unknown"):
                await reader.read_last_written()

    run(main())


def test_the_last_entry_of_a_closed_ledger_is_the_one_that_its_metadata_name() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            for payload in (b"0", b"1"):
                await writer.append(payload)
            await writer.close()
            reader = await client.open(writer.ledger_id)
            last = await reader.read_last_written()
            assert last is not None
            assert last.entry_id == 1

    run(main())
