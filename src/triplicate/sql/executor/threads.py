"""The threads of databases: one for each worker, or shared by all databases of a node."""

from __future__ import annotations

from typing import Protocol

from triplicate.config.node_settings import NodeSettings
from triplicate.runtime import Host, Worker, WorkerPool


class WorkerThreads(Protocol):
    """Makes the workers of one database. Each worker runs one function at a time, in order."""

    def writer(self, database: str) -> Worker:
        """The worker that writes and applies."""

    def reader(self, database: str, number: int) -> Worker:
        """A worker for statements that read."""

    def examiner(self, database: str) -> Worker:
        """The worker that prepares statements, which must not wait behind running ones."""


class ThreadPerWorker:
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
    """A fixed number of threads for all databases of a node, some for each kind of work.

    A long statement occupies one thread of its kind; work of the other kinds is not delayed.
    """

    def __init__(self, host: Host, settings: NodeSettings) -> None:
        self._writers = WorkerPool(host.new_worker, "sql-writer", settings.shared_writer_threads)
        self._readers = WorkerPool(host.new_worker, "sql-reader", settings.shared_reader_threads)
        self._examiners = WorkerPool(host.new_worker, "sql-examiner", settings.shared_examiner_threads)

    def writer(self, database: str) -> Worker:
        return self._writers.serial_worker(f"writer of {database}")

    def reader(self, database: str, number: int) -> Worker:
        return self._readers.serial_worker(f"reader {number} of {database}")

    def examiner(self, database: str) -> Worker:
        return self._examiners.serial_worker(f"examiner of {database}")

    async def close(self) -> None:
        """End the threads when their work has ended."""
        for pool in (self._writers, self._readers, self._examiners):
            await pool.close()
