"""Apache's own benchmark over both wires, on our bookies and on Apache's: every entry is acknowledged.

Its figures are printed with the table. They hold for this machine and run only: client, bookies and ZooKeeper share it.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.interop import table
from tests.interop.driver import NEWEST, java_command
from tests.interop.scenes import WIRES
from tests.interop.stand import Stand

BENCHMARK = "org.apache.bookkeeper.benchmark.BenchThroughputLatency"
ENTRY_BYTES = 100
THROTTLE = 25_000
"""Maximum of unacknowledged entries, and of entries per second: as many as bookies on a busy machine answer before Java's time-out."""
LIMITS = {"ours": (500_000, 45), "apache": (200_000, 25)}
"""Number of entries, and duration in seconds. The benchmark always lasts that long, and sends no entry afterwards."""
END_S = 60
"""Extra time for its start, and for closing its ledger."""


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("bookies", LIMITS)
def test_apaches_benchmark_runs_without_an_error(stand: Stand, bookies: str, wire: str) -> None:
    cluster = stand.cluster(bookies)
    send_limit, time_s = LIMITS[bookies]
    options = {
        "-zookeeper": cluster.servers,
        "-sendlimit": send_limit,
        "-entrysize": ENTRY_BYTES,
        "-throttle": THROTTLE,
        "-time": time_s,
        "-latencyFile": stand.new_folder() / "latencies",
    }
    known = set(stand.java_client(NEWEST, cluster, "v3").ledger_ids())
    arguments = [str(part) for option in options.items() for part in option] + ["-skipwarmup"] + (["-useV2"] if wire == "v2" else [])
    command = [*java_command(NEWEST, "-Xmx512m"), BENCHMARK, *arguments]
    answer = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=time_s + END_S, check=False
    )
    assert answer.returncode == 0, answer.stdout[-5000:]
    found = re.search(r"(\d+) completions in (\d+) milliseconds: (\d+) ops/sec", answer.stdout)
    assert found is not None, answer.stdout[-5000:]
    completions, milliseconds, per_second = map(int, found.groups())
    assert completions == send_limit
    assert " ERROR " not in answer.stdout, answer.stdout[-5000:]
    late = re.search(r"99th percentile latency: ([\d.]+)", answer.stdout)
    assert late is not None
    table.add_figures(
        f"`BenchThroughputLatency` {wire} on {bookies}: {completions:,} entries of {ENTRY_BYTES} bytes in {milliseconds / 1000:.1f} s, "
        f"{per_second:,} entries/s (at most {THROTTLE:,}) on two of three bookies, 99th percentile {float(late[1]):.1f} ms"
    )
    # The ledger holds as many entries as the benchmark counted.
    client = stand.our_client(cluster, "v2")
    (made,) = set(stand.java_client(NEWEST, cluster, "v3").ledger_ids()) - known
    metadata = stand.run(client.metadata_of(made))
    assert (metadata.is_closed, metadata.last_entry_id, metadata.length) == (True, send_limit - 1, send_limit * ENTRY_BYTES)
    reader = stand.run(client.open(made, password=b"benchPasswd"))
    for first in (0, send_limit // 2, send_limit - 100):
        assert [bytes(entry.payload) for entry in stand.run(reader.read(first, first + 99))] == [b"x" * ENTRY_BYTES] * 100
    stand.run(client.delete(made))
