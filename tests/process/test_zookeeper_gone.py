"""ZooKeeper is killed and comes back: appends go on, what needs metadata waits and says why, and everybody is registered afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.running import TIMEOUT_S, Member, Up, command, environment, run_json
from tests.waiting import LIMIT_S, wait_until
from triplicate import blocking, connect

OUTAGE_S = float(os.environ.get("OUTAGE_S", "4"))
"""``OUTAGE_S=60 pytest tests/process/test_zookeeper_gone.py`` shows the same for a minute."""

SESSION_S = 10.0


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with Up(tmp_path / "c", "--metadata", "zk", "--bookies", "3", "--nodes", "0") as cluster:
        yield cluster


def writable(up: Up) -> list[str]:
    async def names() -> list[str]:
        async with connect(up.uri) as client:
            return sorted(await client.metadata.bookies.writable())

    return asyncio.run(names())


def test_appends_continue_without_zookeeper_and_other_operations_wait(up: Up) -> None:
    made: list[int] = []
    with blocking.connect(up.uri) as client, client.create() as writer:
        writer.append(b"before")
        up.kill_member("zookeeper")
        gone_at = time.monotonic()

        def create() -> None:
            with client.create() as waiting:
                made.append(waiting.ledger_id)

        thread = threading.Thread(target=create)
        thread.start()
        # A command that comes now finds nobody, within its deadline, and says so in one line.
        refused = subprocess.Popen(
            command("ledger", "list"), env=environment(TRIPLICATE_METADATA=up.uri), stderr=subprocess.PIPE, text=True
        )
        during = 0
        slowest_s = 0.0
        while time.monotonic() < gone_at + OUTAGE_S:
            began = time.monotonic()
            writer.append(b"during")
            slowest_s = max(slowest_s, time.monotonic() - began)
            during += 1
            time.sleep(0.01)
        assert during > OUTAGE_S * 10
        assert slowest_s < 2.0
        assert made == []
        if OUTAGE_S > SESSION_S:
            _, errors = refused.communicate(timeout=TIMEOUT_S)
            assert "does not answer within 10 s: check that it runs and that the address is right" in errors
        with Member(up.folder, "zookeeper"):
            thread.join(timeout=TIMEOUT_S)
            assert made == [writer.ledger_id + 1]
            refused.communicate(timeout=TIMEOUT_S)
            assert writer.append(b"after") == during + 1
            assert writable(up) == ["bookie-1", "bookie-2", "bookie-3"]
            with client.open(writer.ledger_id) as reader:
                assert reader.read_last_confirmed() >= during
            writer.close()
            assert run_json("ledger", "list", uri=up.uri)
            up.end(signal.SIGTERM)


def test_broken_connections_are_restored_without_zookeeper(up: Up) -> None:
    async def main() -> None:
        async with connect(up.uri) as client, await client.create() as writer:
            await writer.append(b"before")
            reader = await client.open(writer.ledger_id)
            up.kill_member("zookeeper")
            for entry_id in range(1, 4):
                for channel in client._context.pool._channels.values():
                    if channel._transport is not None:
                        channel._transport.abort()
                async with asyncio.timeout(TIMEOUT_S):
                    assert await writer.append(b"during") == entry_id
                    assert (await reader.read_unconfirmed(entry_id, entry_id))[0].payload == b"during"
            assert writer.ensemble_changes == 0
            with Member(up.folder, "zookeeper"):
                assert await writer.append(b"after") == 4
                await writer.close()

    asyncio.run(main())


def test_a_bookie_registers_again_after_its_session_has_expired(up: Up) -> None:
    """It is held still for longer than its session lasts, as an overloaded machine would."""
    pid = up.members["bookie-2"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: writable(up) == ["bookie-1", "bookie-3"], SESSION_S + 5, "the registration is gone")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: writable(up) == ["bookie-1", "bookie-2", "bookie-3"], LIMIT_S, "it is registered again")
    with blocking.connect(up.uri) as client, client.create(ensemble_size=3) as writer:
        writer.append(b"on all three")
