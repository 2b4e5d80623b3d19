"""The price of encryption: appends to a log and reads of it, with and without a key, in turn on the same bookies.

Usage: python -m benchmarks.log_encryption [--rounds 5] [--seconds 3] [--directory FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.driving import percentile
from triplicate.cli import local_cluster
from triplicate.client import connect
from triplicate.log import KnownKeys, Logs, LogSettings, LogWriter

PAYLOAD = b"." * 1024
WINDOW = 64
LARGE = [b"x" * 1024] * 4096
"""Records of about four entries of the greatest size."""
LOGS = ("plain", "encrypted")


def cpu_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


async def append_small(writer: LogWriter, seconds: float) -> dict[str, float]:
    """Entries of 1 KiB, 64 at a time."""
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    async def appender() -> None:
        while (began := time.perf_counter()) < end:
            await writer.append_entry([PAYLOAD])
            latencies.append(time.perf_counter() - began)

    before = cpu_s()
    await asyncio.gather(*(appender() for _ in range(WINDOW)))
    spent = cpu_s() - before
    return {
        "appends_per_s": len(latencies) / seconds,
        "append_p50_ms": percentile(sorted(latencies), 0.5) * 1000,
        "append_cpu_us": spent / len(latencies) * 1e6,
    }


async def append_large(writer: LogWriter, seconds: float) -> dict[str, float]:
    """Entries of 1 MiB, one after another."""
    end, done, before = time.perf_counter() + seconds, 0, cpu_s()
    began = time.perf_counter()
    while time.perf_counter() < end:
        await writer.append_many(LARGE)
        done += sum(map(len, LARGE))
    mib = done / 2**20
    return {"large_mib_per_s": mib / (time.perf_counter() - began), "large_cpu_ms_per_mib": (cpu_s() - before) / mib * 1000}


async def read_back(logs: Logs, name: str, first: int, end: int) -> dict[str, float]:
    """Everything that was written last."""
    before, size = cpu_s(), 0
    async with await logs.reader(name, first) as reader:
        while reader.position < end:
            entry = await reader.next_entry(30.0)
            assert entry is not None, f"log {name} ends at {reader.position}"
            size += len(entry.view.value_data)
    return {"read_cpu_ms_per_mib": (cpu_s() - before) / (size / 2**20) * 1000}


async def measure(uri: str, rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in LOGS}
    async with connect(uri) as client:
        logs = Logs(client, keys=KnownKeys({"bench": bytes(range(32))}))
        for name in LOGS:
            await logs.create(name, LogSettings(compression="none"), key_id="bench" if name == "encrypted" else "")
        for turn in range(rounds):
            for name in LOGS[:: 1 if turn % 2 else -1]:
                async with await logs.writer(name, owner="bench") as writer:
                    figures = await append_small(writer, seconds)
                    first = writer.next_offset
                    figures |= await append_large(writer, seconds)
                    end = writer.next_offset
                figures |= await read_back(logs, name, first, end)
                for key, value in figures.items():
                    found[name][key].append(value)
    return {name: {key: round(statistics.median(values), 3) for key, values in figures.items()} for name, figures in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as folder, local_cluster(Path(folder) / "c", bookies=3, nodes=0) as cluster:
        print(json.dumps(asyncio.run(measure(cluster.folder.metadata_uri, options.rounds, options.seconds)), indent=2))


if __name__ == "__main__":
    main()
