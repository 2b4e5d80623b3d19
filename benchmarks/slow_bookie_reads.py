"""Measure reads beside a slow bookie, and how far a catch-up uses all copies.

Three bookies and a client run in one process over loopback. The bytes from a bookie to the client can be delayed, or limited to a rate.

    python -m benchmarks.slow_bookie_reads [--reads 4000] [--rounds 5] [--readers 4] [--delay-ms 200] [--mib 48] [--rate-mib 8]

The first table has reads of single entries of 1 KiB at random places, in four states: all bookies usual, one of them delayed; each with the
hedged reads of the default settings, and without. *extra* is the share of additional reads. The client of a state reads for a while before
the bookie is delayed, and the reads after that moment are measured, so that those which find out that the bookie is slow are among them.

The second table has the rate at which a tail reads a whole ledger while the answers of each bookie are limited to a rate: with 1, 2 and
3 copies.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import ssl
import statistics
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from triplicate.bookie import Bookie
from triplicate.client import Client, LedgerReader
from triplicate.config import BookieSettings, ClientSettings
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree
from triplicate.runtime import Host, Listener, Metrics, Network, real_host

MIB = 1 << 20
PAYLOAD = bytes(range(256)) * 4
ENTRIES = 20_000
WARM_READS = 600


@dataclass
class Link:
    """The bytes that the client receives from one bookie, over all connections."""

    delay_s: float = 0.0
    bytes_per_s: float = float("inf")
    free_at: float = 0.0
    """When the bytes so far have passed, in seconds of the loop's clock."""

    def due(self, size_bytes: int, now: float) -> float:
        self.free_at = max(self.free_at, now) + size_bytes / self.bytes_per_s
        return self.free_at + self.delay_s


class LinkedProtocol(asyncio.Protocol):
    """Passes everything on to another protocol, received bytes later."""

    def __init__(self, inner: asyncio.Protocol, link: Link) -> None:
        self.inner = inner
        self._link = link
        self._last_due = 0.0
        self.connection_lost = inner.connection_lost  # type: ignore[method-assign]
        self.connection_made = inner.connection_made  # type: ignore[method-assign]
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]

    def data_received(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._last_due = max(self._last_due, self._link.due(len(data), loop.time()))
        if self._last_due <= loop.time():
            self.inner.data_received(data)
        else:
            loop.call_at(self._last_due, self.inner.data_received, data)


class LinkedNetwork:
    """The client's network, with a link for each port of a bookie."""

    def __init__(self, real: Network) -> None:
        self._real = real
        self.links: dict[int, Link] = {}

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> tuple[asyncio.Transport, asyncio.Protocol]:
        link = self.links.setdefault(port, Link())
        transport, protocol = await self._real.connect(lambda: LinkedProtocol(factory(), link), host, port)
        assert isinstance(protocol, LinkedProtocol)
        return transport, protocol.inner

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        return await self._real.listen(factory, host, port)

    async def start_tls(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        *,
        limit_s: float,
        server_name: str | None,
        received: bytes = b"",
    ) -> asyncio.Transport:
        raise OSError("this benchmark has no TLS")


@dataclass
class Cluster:
    host: Host
    network: LinkedNetwork
    metadata: ClusterMetadata
    ports: dict[str, int] = field(default_factory=dict)

    def link(self, bookie_id: str) -> Link:
        return self.network.links.setdefault(self.ports[bookie_id], Link())

    def client(self, settings: ClientSettings, metrics: Metrics | None = None) -> Client:
        return Client(self.host, self.metadata, settings, metrics)

    async def written(self, entries: int, copies: int) -> int:
        """The id of a new, closed ledger."""
        async with self.client(ClientSettings()) as client:
            writer = await client.create(ensemble_size=copies, write_quorum=copies, ack_quorum=copies)
            for first in range(0, entries, 500):
                await writer.append_many([PAYLOAD] * min(500, entries - first))
            await writer.close()
            return writer.ledger_id


@asynccontextmanager
async def cluster_of_three() -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        plain = real_host("bench", seed=1)
        network = LinkedNetwork(plain.network)
        host = replace(plain, network=network)
        tree = MemoryTree(MemoryStore(host.clock))
        stack.push_async_callback(tree.close)
        metadata = await ClusterMetadata.open(tree, host, create=True)
        stack.push_async_callback(metadata.aclose)
        cluster = Cluster(host, network, metadata)
        for name in "abc":
            directories = (f"{folder}/{name}",)
            settings = BookieSettings(
                bookie_id=name, journal_directories=directories, ledger_directories=directories, host="127.0.0.1", port=0
            )
            bookie = await Bookie.start(plain, settings, metadata)
            stack.push_async_callback(bookie.stop)
            cluster.ports[name] = bookie.address[1]
        yield cluster


class ReadFigures(NamedTuple):
    p50_ms: float
    p99_ms: float
    worst_ms: float
    extra_share: float


def figures_of(latencies_s: Sequence[float], extra_reads: float) -> ReadFigures:
    """The figures of one state."""
    ordered = sorted(latencies_s)
    at = [ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 for share in (0.5, 0.99)]
    return ReadFigures(at[0], at[1], ordered[-1] * 1000, extra_reads / len(ordered))


def extra_reads(metrics: Metrics) -> float:
    """Additional reads of a client so far, for any reason."""
    lines = [line for line in metrics.expose().decode().splitlines() if line.startswith("bookkeeper_client_SPECULATIVE_READ_COUNT_total")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


async def read_at_random(reader: LedgerReader, reads: int, readers: int, rng: random.Random) -> list[float]:
    """The latencies of reads of one entry, in seconds."""
    clock, latencies_s = asyncio.get_running_loop().time, list[float]()

    async def one_reader() -> None:
        for _ in range(reads // readers):
            entry_id = rng.randrange(ENTRIES)
            began = clock()
            await reader.read(entry_id, entry_id)
            latencies_s.append(clock() - began)

    await asyncio.gather(*(one_reader() for _ in range(readers)))
    return latencies_s


async def measure_reads(cluster: Cluster, ledger_id: int, hedge_read_s: float, delay_s: float, options: argparse.Namespace) -> ReadFigures:
    """One state of the first table."""
    metrics = Metrics()
    async with cluster.client(ClientSettings(hedge_read_s=hedge_read_s), metrics) as client:
        reader = await client.open(ledger_id)
        rng = random.Random(3)
        await read_at_random(reader, WARM_READS, options.readers, rng)
        before = extra_reads(metrics)
        link = cluster.link("b")
        link.delay_s = delay_s
        try:
            latencies_s = await read_at_random(reader, options.reads, options.readers, rng)
        finally:
            link.delay_s = 0.0
        return figures_of(latencies_s, extra_reads(metrics) - before)


async def measure_catch_up(cluster: Cluster, copies: int, options: argparse.Namespace) -> float:
    """MiB of payload per second of a tail over a whole ledger."""
    entries = options.mib * MIB // len(PAYLOAD)
    ledger_id = await cluster.written(entries, copies)
    clock = asyncio.get_running_loop().time
    async with cluster.client(ClientSettings()) as client:
        reader = await client.open(ledger_id)
        for name in cluster.ports:
            cluster.link(name).bytes_per_s = options.rate_mib * MIB
        try:
            began, seen = clock(), 0
            async with reader.tail() as tail:
                while some := await tail.next_entries():
                    seen += len(some)
            assert seen == entries
            return float(entries * len(PAYLOAD) / MIB / (clock() - began))
        finally:
            for name in cluster.ports:
                cluster.link(name).bytes_per_s = float("inf")


async def run(options: argparse.Namespace) -> None:
    async with cluster_of_three() as cluster:
        if options.reads:
            ledger_id = await cluster.written(ENTRIES, 3)
            states = [(hedge_read_s, delay_s) for hedge_read_s in (0.5, 0.0) for delay_s in (0.0, options.delay_ms / 1000)]
            found: dict[tuple[float, float], list[ReadFigures]] = {state: [] for state in states}
            for _ in range(options.rounds):
                for state in states:
                    found[state].append(await measure_reads(cluster, ledger_id, *state, options))
            print(f"{'state':42} {'p50 ms':>8} {'p99 ms':>8} {'worst ms':>9} {'extra':>7}")
            for (hedge_read_s, delay_s), rounds in found.items():
                p50_ms, p99_ms, worst_ms, extra = (statistics.median(column) for column in zip(*rounds, strict=True))
                which = f"one bookie {delay_s * 1000:.0f} ms later" if delay_s else "all bookies usual"
                state_name = f"{'hedged' if hedge_read_s else 'not hedged'}, {which}"
                print(f"{state_name:42} {p50_ms:8.2f} {p99_ms:8.2f} {worst_ms:9.1f} {extra:7.2%}")
        if options.mib:
            print(f"\n{'copies':>6} {'MiB/s':>7} {'of one bookie':>14}")
            for copies in (1, 2, 3):
                rate = await measure_catch_up(cluster, copies, options)
                print(f"{copies:6} {rate:7.1f} {rate / options.rate_mib:14.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reads", type=int, default=4000, help="reads of each state of the first table; 0: no table")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the first table; medians are printed")
    parser.add_argument("--readers", type=int, default=4, help="reads at a time")
    parser.add_argument("--delay-ms", type=float, default=200.0, help="delay of the slow bookie")
    parser.add_argument("--mib", type=int, default=48, help="size of the ledgers of the second table; 0: no table")
    parser.add_argument("--rate-mib", type=float, default=8.0, help="rate of each bookie, per second")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
