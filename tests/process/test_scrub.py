"""A bit flips in the entry log of a stopped bookie; its scrubber finds it, and the copy is made good from the others."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from tests.process.at_once import at_once
from tests.process.running import Member, Up, is_running
from tests.waiting import LIMIT_S, wait_until
from triplicate.client import Client, connect
from triplicate.errors import DigestMismatch
from triplicate.ledger import EntryCodec

BOOKIE = "bookie-2"
ENTRIES = 40


def payload(entry_id: int) -> bytes:
    return b"payload number %d " % entry_id * 10


async def write(uri: str) -> int:
    async with connect(uri) as client:
        writer = await client.create(ensemble_size=3, write_quorum=3, ack_quorum=3)
        for entry_id in range(ENTRIES):
            await writer.append(payload(entry_id))
        await writer.close()
        return writer.ledger_id


async def bad_copies(client: Client, ledger_id: int) -> list[tuple[int, str]]:
    """The copies that no read with a right digest delivers."""
    metadata = await client.metadata_of(ledger_id)
    codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password)
    bad: list[tuple[int, str]] = []
    async with client.bookie_copies() as copies:
        for entry_id in range(ENTRIES):
            for bookie_id in metadata.ensemble_of(entry_id):
                try:
                    intact = await copies.read(codec, entry_id, bookie_id) is not None
                except DigestMismatch:
                    intact = False
                if not intact:
                    bad.append((entry_id, bookie_id))
    return bad


async def found_or_repaired(uri: str, ledger_id: int) -> bool:
    """Whether the damage is recorded. If auto-recovery is quick, the copy is good again instead."""
    async with connect(uri) as client:
        return await client.metadata.damaged_copies.get(ledger_id) is not None or not await bad_copies(client, ledger_id)


async def is_good(uri: str, ledger_id: int) -> bool:
    """Whether every copy is good, and nothing says otherwise."""
    async with connect(uri) as client:
        marked = await client.metadata.under_replication.get(ledger_id) is not None
        recorded = await client.metadata.damaged_copies.get(ledger_id) is not None
        return not marked and not recorded and not await bad_copies(client, ledger_id)


def recovered(uri: str, ledger_id: int) -> bool:
    """Recover once; whether every copy is good then. A worker of a bookie may have locked the ledger, and is left to it."""
    at_once("cluster", "recover", uri=uri, check=False)
    return asyncio.run(is_good(uri, ledger_id))


def flip_in_entry_log(folder: Path, text: bytes) -> None:
    """Flip a bit of the first entry log below a folder that contains the text."""
    for path in sorted(folder.rglob("*.entries")):
        data = bytearray(path.read_bytes())
        place = data.find(text)
        if place >= 0:
            data[place] ^= 1
            path.write_bytes(data)
            return
    raise AssertionError(f"no entry log below {folder} contains {text!r}")


def test_a_flipped_bit_is_found_and_the_copy_is_made_good(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Up(folder, "--nodes", "0", "--bookies", "3") as up:
        ledger_id = asyncio.run(write(up.uri))
        pid = up.members[BOOKIE]["pid"]
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not is_running(pid), LIMIT_S, f"{BOOKIE} is gone")
        flip_in_entry_log(folder / BOOKIE, payload(7))
        settings = folder / BOOKIE / "bookie.toml"
        text = settings.read_text()
        assert "[bookie]\n" in text
        settings.write_text(text.replace("[bookie]\n", "[bookie]\nscrub_interval_s = 0.5\nscrub_bytes_per_s = 1073741824\n"))
        with Member(folder, BOOKIE):
            wait_until(lambda: asyncio.run(found_or_repaired(up.uri, ledger_id)), LIMIT_S, "the damage is found")
            wait_until(lambda: recovered(up.uri, ledger_id), LIMIT_S, "every copy is good")
        assert up.end(signal.SIGTERM) == 0
