"""Jobs of many small tasks, beside an application that writes the same log: few ledgers, few read tasks, every record once."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.spark.conftest import Bench
from triplicate.client import Client, connect
from triplicate.log import Logs


def write_partitions(bench: Bench, log: str, records: int, partitions: int, **options: str) -> None:
    frame = bench.spark.range(0, records, numPartitions=partitions).selectExpr("cast(id AS string) AS value")
    frame.write.format("triplicate").mode("append").options(**bench.named(log), **options).save()


def segments_of(bench: Bench, log: str) -> int:
    async def ask(client: Client) -> int:
        return len(await Logs(client).segments(log))

    return bench.run(ask)


def test_a_job_of_many_tiny_tasks_leaves_one_segment_and_is_read_by_one_task(bench: Bench) -> None:
    log = bench.new_log()
    write_partitions(bench, log, 120, 24, txnAppId="job", txnVersion="1")
    write_partitions(bench, log, 120, 24, txnAppId="job", txnVersion="1")
    assert segments_of(bench, log) == 1
    assert bench.staging_ledgers(log) == []
    assert bench.values(log) == list(range(120))
    assert bench.reader(log).load().rdd.getNumPartitions() == 1


def test_segments_that_were_not_joined_are_read_by_few_tasks(bench: Bench) -> None:
    log = bench.new_log()
    write_partitions(bench, log, 60, 12, targetLedgerBytes="0")
    assert segments_of(bench, log) == 12
    assert bench.values(log) == list(range(60))
    assert bench.reader(log).load().rdd.getNumPartitions() == 1
    assert bench.reader(log, recordsPerPartition="10").load().rdd.getNumPartitions() == 6


def test_jobs_and_an_application_write_one_log(bench: Bench) -> None:
    log = bench.new_log()
    begun, stop = threading.Event(), threading.Event()

    async def append(client: Client) -> dict[int, bytes]:
        appended: dict[int, bytes] = {}
        async with await Logs(client).writer(log, owner="application") as writer:
            while not stop.is_set():
                value = b"%d" % (1_000_000 + len(appended))
                appended[await writer.append(value)] = value
                begun.set()
                await asyncio.sleep(0.01)
            assert writer.admitted == 90
        return appended

    async def application() -> dict[int, bytes]:
        async with connect(bench.uri) as client:
            return await append(client)

    with ThreadPoolExecutor(1) as threads:
        appending = threads.submit(asyncio.run, application())
        try:
            assert begun.wait(60)
            for version in (1, 2, 2, 3):
                write_partitions(bench, log, 30, 3, txnAppId="job", txnVersion=str(version))
        finally:
            stop.set()
        appended = appending.result(60)
    values = bench.values(log)
    assert len(values) == len(appended) + 90
    assert all(values[offset] == int(value) for offset, value in appended.items())
    assert [value for value in values if value < 1_000_000] == [*range(30)] * 3
