"""Bookies of `triplicate up` in two racks of the cluster's table: an ack quorum in one rack does not acknowledge an entry."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.process.machines import machines, set_racks
from tests.process.running import Up
from tests.waiting import eventually
from triplicate.client import Client, LedgerWriter, connect
from triplicate.config import ClientSettings
from triplicate.errors import NotEnoughBookies
from triplicate.ledger import EntryCodec

IN_TWO_RACKS = ClientSettings(placement_policy="rack-aware", placement_min_ack_domains=2)
IN_ANY = replace(IN_TWO_RACKS, placement_min_ack_domains=1)


@contextlib.contextmanager
def stopped(up: Up, name: str) -> Iterator[None]:
    """A bookie that hangs for the block."""
    pid = up.members[name]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def stored_on(client: Client, writer: LedgerWriter, entry_id: int, names: list[str]) -> None:
    """Wait until these bookies have an entry."""
    codec = EntryCodec(writer.ledger_id, writer.metadata.digest_type, writer.metadata.password)
    async with client.bookie_copies() as copies:
        for name in names:
            while await copies.read(codec, entry_id, name) is None:
                await asyncio.sleep(0.01)


async def append_without_the_far_rack(up: Up) -> None:
    async with connect(up.uri, settings=IN_TWO_RACKS) as client, connect(up.uri, settings=IN_ANY) as careless:
        writer, other = [await each.create(ensemble_size=3, write_quorum=3, ack_quorum=2) for each in (client, careless)]
        assert await writer.append(b"in both racks") == await other.append(b"in any") == 0
        with stopped(up, "bookie-3"):
            waiting = asyncio.ensure_future(writer.append(b"in one rack"))
            async with asyncio.timeout(20.0):
                await stored_on(client, writer, 1, ["bookie-1", "bookie-2"])
                assert await other.append(b"in one rack") == 1, "without the number an ack quorum is enough"
            assert not waiting.done()
            assert writer.last_add_confirmed == 0
        await eventually(waiting.done)
        assert waiting.result() == 1
        await writer.close()
        await other.close()


async def create_in_one_rack(uri: str) -> None:
    async with connect(uri, settings=IN_TWO_RACKS) as client:
        with pytest.raises(NotEnoughBookies, match="/near"):
            await client.create(ensemble_size=3, write_quorum=3, ack_quorum=2)


def test_an_entry_is_acknowledged_when_bookies_of_two_racks_have_it(tmp_path: Path) -> None:
    with machines(tmp_path / "c", bookies=3) as up:
        set_racks(up.uri, {"bookie-1": "/near", "bookie-2": "/near", "bookie-3": "/far"})
        asyncio.run(append_without_the_far_rack(up))
        set_racks(up.uri, {"bookie-3": "/near"})
        asyncio.run(create_in_one_rack(up.uri))
