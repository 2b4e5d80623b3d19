"""The threads on which databases work: of their own, or shared by all databases of a node."""

from __future__ import annotations

from typing import Protocol

from triplicate.config.node_settings import NodeSettings
from triplicate.runtime import Host, Worker, WorkerPool


class Threads(Protocol):
    """Makes the workers of one database. Each worker runs one function at a time, in order."""

    def writer(self, database: str) -> Worker:
        """Writes and applies."""

    def reader(self, database: str, number: int) -> Worker:
        """Runs statements that read."""

    def examiner(self, database: str) -> Worker:
        """Prepares statements, which must not wait behind those that run."""


class OwnThreads:
    """A thread for each worker."""

    def __init__(self, host: Host) -> None:
        self._new_worker = host.new_worker

    def writer(self, database: str) -> Worker:
        return self._new_worker(f"sql-{database}-writer")

    def reader(self, database: str, number: int) -> Worker:
        return self._new_worker(f"sql-{database}-reader-{number}")

    def examiner(self, database: str) -> Worker:
        return self._new_worker(f"sql-{database}-examiner")


class SharedThreads:
    """A number of threads that does not grow with the databases of a node: some for each kind of work.

    A statement that runs for long holds one thread of its kind; those of the other kinds are not delayed by it.
    """

    def __init__(self, host: Host, settings: NodeSettings) -> None:
        self._writers = WorkerPool(host.new_worker, "sql-writer", settings.shared_writer_threads)
        self._readers = WorkerPool(host.new_worker, "sql-reader", settings.shared_reader_threads)
        self._examiners = WorkerPool(host.new_worker, "sql-examiner", settings.shared_examiner_threads)

    def writer(self, database: str) -> Worker:
        return self._writers.lane(f"writer of {database}")

    def reader(self, database: str, number: int) -> Worker:
        return self._readers.lane(f"reader {number} of {database}")

    def examiner(self, database: str) -> Worker:
        return self._examiners.lane(f"examiner of {database}")

    async def close(self) -> None:
        """End the threads when what runs on them has ended."""
        for pool in (self._writers, self._readers, self._examiners):
            await pool.close()
