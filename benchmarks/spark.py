"""Throughput of Spark writing and reading a log: records and bytes per second through real bookies of this machine.

    python benchmarks/spark.py [--megabytes 200] [--partitions 4] [--bookies 3]

Payloads are random bytes, so nothing is compressed; each record is kept three times and acknowledged by two bookies after fsync. Reads go
to Spark's `noop` sink, so every column reaches the JVM and is dropped there. Each figure is the best of three runs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from triplicate.blocking import connect
from triplicate.cli import local_cluster, print_table
from triplicate.log import Logs, LogSettings
from triplicate.spark import session

RUNS = 3
SIZES = (100, 1024)


def make_input(folder: Path, size_bytes: int, records: int, files: int) -> None:
    """Parquet files of random values."""
    folder.mkdir()
    each = records // files
    for number in range(files):
        offsets = pa.array(range(0, (each + 1) * size_bytes, size_bytes), pa.int32()).buffers()[1]
        values = pa.Array.from_buffers(pa.binary(), each, [None, offsets, pa.py_buffer(os.urandom(each * size_bytes))])
        pq.write_table(pa.table({"value": values}), folder / f"{number}.parquet", compression="none", use_dictionary=False)


def best(run: Callable[[int], object]) -> float:
    """Seconds of the fastest run, after a warm-up run."""
    times = []
    for number in range(RUNS + 1):
        started = time.perf_counter()
        run(number)
        times.append(time.perf_counter() - started)
    return min(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--bookies", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="tri-") as name, local_cluster(Path(name) / "c", bookies=arguments.bookies, nodes=0) as cluster:
        folder, uri = Path(name), cluster.folder.metadata_uri
        spark = session("rates", run_folder=folder / "s")
        for size in SIZES:
            records = arguments.megabytes * 1_000_000 // size // arguments.partitions * arguments.partitions
            make_input(folder / f"in-{size}", size, records, arguments.partitions)
            frame = spark.read.parquet(str(folder / f"in-{size}"))
            with connect(uri) as client:
                for number in range(RUNS + 1):
                    client.loop.call(Logs(client.client).create(f"log-{size}-{number}", LogSettings()))
            per_part = str(records // arguments.partitions)

            def write(number: int, frame: object = frame, size: int = size) -> None:
                writer = frame.write.format("triplicate").mode("append")  # type: ignore[attr-defined]
                writer.option("metadataServiceUri", uri).option("log", f"log-{size}-{number}").save()

            def read(number: int, size: int = size, per_part: str = per_part) -> None:
                reader = spark.read.format("triplicate").option("metadataServiceUri", uri).option("recordsPerPartition", per_part)
                reader.option("log", f"log-{size}-{number}").load().write.format("noop").mode("overwrite").save()

            for what, run in (("write", write), ("read", read)):
                seconds = best(run)
                rows.append((what, f"{size} B", f"{records / seconds:,.0f}", f"{records * size / seconds / 1e6:,.0f}", f"{seconds:.2f}"))
        spark.stop()
    print_table(("job", "record", "records/s", "MB/s", "seconds"), rows, right=("records/s", "MB/s", "seconds"))


if __name__ == "__main__":
    main()
