"""A bookie of `triplicate up` is decommissioned beside a log that is being written; the first attempt is interrupted."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

from tests.process.running import Up, run, run_json, started
from triplicate.client import Client, connect
from triplicate.log import Logs

LEDGERS = 6
ENTRIES = 30


async def write_ledgers(client: Client) -> str:
    """Write some ledgers; returns a bookie that the first one names."""
    names: list[str] = []
    for _ in range(LEDGERS):
        async with await client.create() as writer:
            await writer.append_many([b"%d" % entry * 500 for entry in range(ENTRIES)])
            names += writer.metadata.last_segment.ensemble
    return names[0]


def interrupt_when_it_moves(uri: str, gone: str) -> None:
    """Start a slow decommission, and interrupt it when it begins to move ledgers."""
    with started("bookie", "decommission", gone, "--rate", "0.001", uri=uri) as process:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if "moves ledgers" in line:
                break
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate()
        assert process.returncode == 130, "".join([*lines, rest or ""])


async def play(uri: str) -> str:
    """Returns the bookie that was decommissioned."""
    async with connect(uri) as client:
        gone = await write_ledgers(client)
        other = next(name for name in await client.metadata.bookies.writable() if name != gone)
        logs = Logs(client)
        await logs.create("events")
        writer = await logs.writer("events", owner="test")
        written = 0
        is_over = asyncio.Event()

        async def write() -> None:
            nonlocal written
            while not is_over.is_set():
                await writer.append(b"record %d" % written)
                written += 1
                await asyncio.sleep(0.005)

        writing = asyncio.create_task(write())
        refused = await asyncio.to_thread(run, "bookie", "decommission", gone, other, "--json", uri=uri, check=False)
        assert refused.returncode == 1
        assert len(json.loads(refused.stdout)["refused"]) >= LEDGERS
        await asyncio.to_thread(interrupt_when_it_moves, uri, gone)
        assert (await asyncio.to_thread(run_json, "cookie", "show", gone, uri=uri))["bookie"] == gone
        report = await asyncio.to_thread(run_json, "bookie", "decommission", gone, "--rate", "0", uri=uri)
        assert (report["removed"], report["obstacles"], report["running"]) == (True, [], [gone])
        assert report["ledgers_checked"] >= LEDGERS + 1
        assert report["entries_checked"] > 0
        before = written
        while written < before + 20:
            assert not writing.done()
            await asyncio.sleep(0.01)
        is_over.set()
        await writing
        await writer.close()
        async for ledger_id in client.ledger_ids():
            metadata = await client.metadata_of(ledger_id)
            assert not [segment for segment in metadata.segments if gone in segment.ensemble]
        values: list[bytes | None] = []
        async with await logs.reader("events") as reader:
            async for entry in reader:
                values += entry.values
                if len(values) >= written:
                    break
        assert values == [b"record %d" % number for number in range(written)]
    return gone


def test_a_bookie_is_decommissioned_beside_a_writer_and_after_an_interruption(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--nodes", "0") as up:
        gone = asyncio.run(play(up.uri))
        up.kill_member(gone)
        again = run("bookie", "--config", str(up.folder / gone / "bookie.toml"), check=False)
        assert again.returncode == 1
        assert f"the cluster knows no bookie {gone}: if the bookie was decommissioned, its data is no longer needed" in again.stderr
        assert run("cookie", "show", gone, uri=up.uri, check=False).returncode == 1
