"""A million half-open connections at a bookie's and a node's doors, with TLS and authentication required, on real processes.

The environment variable ``TRIPLICATE_FLOOD`` changes the number, for a quick look.
"""

from __future__ import annotations

import asyncio
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.flood import Flood, client_hello, open_descriptors
from tests.process.running import TIMEOUT_S, Up, run
from tests.waiting import wait_until
from triplicate.cli.supervision.cluster_folder import CLIENT_FILE
from triplicate.wire import StartTlsRequest, v3

NUMBER = int(os.environ.get("TRIPLICATE_FLOOD", "1000000"))
WARM, ROUNDS = 20_000, 20
FIRST_ROUNDS = ROUNDS // 4
"""Pools, caches and the admitted connections themselves may need memory until then."""
OPEN_AT_ONCE = 2000
"""More than the doors admit, so that they have to close some."""
GROWTH_BYTES_MAX = 64 << 20
"""64 bytes for each of a million connections."""
OPEN_BYTES_MAX = 256 << 20
"""1000 admitted connections in the middle of a TLS handshake."""
DESCRIPTORS_MAX, LEFT_MAX = 1500, 50
"""Beyond those of the idle process: during the flood, when a bookie admits 1000 half-open connections, and after it."""
SOURCES = [f"127.0.1.{number}" for number in range(1, 42)]
"""The honest client comes from 127.0.0.1. One behind an address of the flood shares its lot: new connections replace older ones."""
ATTACKED = {"bookie": ("bookie-1", "address"), "node": ("node-1", "address"), "resp": ("node-1", "resp")}
"""The process, and the name of its address."""
FIRST = {
    "bookie": v3.encode_request(StartTlsRequest(), 1),
    "node": struct.pack(">ii", 8, 80877103),
    "resp": client_hello(),
}
CONNECT_TIMEOUT_S = "60"
"""On a slow machine an answer may take longer than the 5 s after which a client looks for another bookie, and here there is none."""


def append(up: Up) -> None:
    # Each of the three bookies must acknowledge, the attacked one too.
    config = str(up.folder / CLIENT_FILE)
    run(
        "ledger", "append", "new", "x", "--ack-quorum", "3", TRIPLICATE_CONFIG=config, TRIPLICATE_CLIENT_CONNECT_TIMEOUT_S=CONNECT_TIMEOUT_S
    )


def select(up: Up) -> None:
    answer = run("sql", "shop", "--small", "-c", "select 6 * 7", TRIPLICATE_CONFIG=str(up.folder / CLIENT_FILE))
    assert " 42" in answer.stdout


def put(up: Up) -> None:
    password = str(up.folder / "security" / "administrator.password")
    options = "--nodes", str(up.members["node-1"]["resp"]), "--user", "administrator", "--password-file", password, "--tls"
    run("kv", "put", "basket", "a", "1", *options, TRIPLICATE_CONFIG=str(up.folder / CLIENT_FILE))


HONEST: dict[str, Callable[[Up], None]] = {"bookie": append, "node": select, "resp": put}


def address_of(up: Up, name: str, which: str) -> tuple[str, int]:
    host, _, port = str(up.members[name][which]).rpartition(":")
    return host, int(port)


@pytest.mark.deep
@pytest.mark.parametrize("door", list(ATTACKED))
def test_a_million_half_open_connections_keep_no_honest_client_out(tmp_path: Path, door: str) -> None:
    with Up(tmp_path / "c", "--secure", "--bookies", "3", "--nodes", "1", "--resp") as up:
        run("database", "create", "shop", TRIPLICATE_CONFIG=str(up.folder / CLIENT_FILE))
        run("kv", "create", "basket", TRIPLICATE_CONFIG=str(up.folder / CLIENT_FILE))
        honest, (attacked, which) = HONEST[door], ATTACKED[door]
        process = psutil.Process(up.members[attacked]["pid"])
        flood = Flood(address_of(up, attacked, which), FIRST[door], OPEN_AT_ONCE, SOURCES)
        honest(up)
        idle_descriptors, idle_bytes = open_descriptors(process.pid), process.memory_info().rss

        async def body() -> list[float]:
            await flood.attempt(min(WARM, NUMBER))
            used_bytes: list[int] = []
            served_s: list[float] = []
            for _ in range(ROUNDS):
                attempts = asyncio.ensure_future(flood.attempt((NUMBER - min(WARM, NUMBER)) // ROUNDS))
                began = time.monotonic()
                await asyncio.to_thread(honest, up)
                served_s.append(time.monotonic() - began)
                await attempts
                used_bytes.append(process.memory_info().rss)
                assert used_bytes[-1] - max(used_bytes[:FIRST_ROUNDS]) < GROWTH_BYTES_MAX
                assert used_bytes[-1] - idle_bytes < OPEN_BYTES_MAX + GROWTH_BYTES_MAX
                assert open_descriptors(process.pid) < idle_descriptors + DESCRIPTORS_MAX
            return served_s

        began = time.monotonic()
        try:
            served_s = asyncio.run(body())
        finally:
            flood.close()
        seconds = time.monotonic() - began
        print(
            f"{door}: {flood.opened} opened and {flood.refused} refused in {seconds:.0f} s, "
            f"an honest client in at most {max(served_s):.1f} s, {process.memory_info().rss >> 20} MiB"
        )
        assert flood.opened + flood.refused >= NUMBER - ROUNDS
        assert process.is_running()
        honest(up)
        # A connection whose handshake waits for its turn is not read, so its end is noticed when the time for the login is over.
        wait_until(lambda: open_descriptors(process.pid) < idle_descriptors + LEFT_MAX, TIMEOUT_S, "the connections are closed")
