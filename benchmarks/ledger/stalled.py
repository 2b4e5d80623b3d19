"""Memory of each bookie under full load while one bookie's disk hangs and a reader of another bookie accepts no answers.

The bookies' metrics must show that both were stalled, or the case fails.
"""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.ledger.cases import LIMIT_S, PAYLOAD_BYTES, WINDOW, Figures, Turn, created
from benchmarks.ledger.machine import MIB
from benchmarks.ledger.ours import Ours
from benchmarks.ledger.processes import CaseFailed
from triplicate.config import BookieSettings
from triplicate.wire import BatchReadRequest, encode_request

UNREAD, STALLED_DISK = "bookie-1", "bookie-3"
REQUESTS = 1000
RECEIVE_BYTES = 64 * 1024
METRICS_LIMIT_S = 10.0
ASK_S = 0.1
SAMPLE_S = 1.0
STALLED_ANSWERS_BYTES = BookieSettings().answers_per_connection_bytes // 2
"""Bytes of answers that must wait at every sample; with fewer the reader was not stalled."""
ANSWERS = "bookie_answers_waiting_bytes_max"
ACKNOWLEDGED = 'bookkeeper_server_ADD_ENTRY_total{status="OK"}'


class StalledReader:
    """Requests all of a ledger from one bookie repeatedly, and never reads the answers."""

    def __init__(self, port: int, ledger: int) -> None:
        self._socket = socket.socket()
        # Small kernel buffers, so that answers wait in the bookie.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._socket.settimeout(5)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setblocking(False)
        self._requests = b"".join(encode_request(BatchReadRequest(ledger, 0, number, 5000, 4 * MIB)) for number in range(REQUESTS))
        self._sent = 0

    def ask(self) -> None:
        """Send as much as the socket accepts now; the next call continues there, also inside a request."""
        try:
            while True:
                self._sent += self._socket.send(memoryview(self._requests)[self._sent :])
                self._sent %= len(self._requests)
        except BlockingIOError:
            return

    def close(self) -> None:
        self._socket.close()


@dataclass(frozen=True)
class Sample:
    """Metrics of the two bookies at one moment."""

    answers_bytes: float
    """Bytes of answers that wait for the stalled reader, in its bookie."""
    acknowledged: float
    """Entries so far of the bookie with the hanging disk."""


def metric(port: int, name: str) -> float:
    """The value of a metric. Raises CaseFailed if it or all metrics are missing."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=METRICS_LIMIT_S) as answer:
            text: str = answer.read().decode()
    except OSError as error:
        raise CaseFailed(f"no metrics from port {port}: {error}") from None
    for line in text.splitlines():
        found, _, value = line.rpartition(" ")
        if found == name:
            return float(value)
    raise CaseFailed(f"{name} is not among the metrics of port {port}")


def sample(side: Ours) -> Sample:
    return Sample(metric(side.metrics_ports[UNREAD], ANSWERS), metric(side.metrics_ports[STALLED_DISK], ACKNOWLEDGED))


def judged(samples: list[Sample]) -> Figures:
    """The figures which show that both were stalled.

    Raises:
        CaseFailed: one of them was not, or the time was too short to sample it.
    """
    if len(samples) < 2:
        raise CaseFailed("the stall was too short for two samples")
    least = min(one.answers_bytes for one in samples)
    if least < STALLED_ANSWERS_BYTES:
        raise CaseFailed(f"the reader was not stalled: only {least:.0f} bytes of answers waited for it in {UNREAD}")
    acknowledged = samples[-1].acknowledged - samples[0].acknowledged
    if not samples[0].acknowledged:
        raise CaseFailed(f"the disk stalled nothing: {STALLED_DISK} had acknowledged no entry before")
    if acknowledged:
        raise CaseFailed(f"the disk was not stalled: {STALLED_DISK} acknowledged {acknowledged:.0f} entries meanwhile")
    return {"answers_waiting_mib": least / MIB, "stalled_looks": len(samples)}


def samples_during(side: Ours, reader: StalledReader, seconds: float) -> Iterator[Sample]:
    """Sample the metrics. Operations in flight at the start of the stall have a second to end; the last sample is at the end."""
    ends = time.monotonic() + seconds
    due = time.monotonic() + min(SAMPLE_S, seconds / 3)
    while (now := time.monotonic()) < ends:
        reader.ask()
        if now >= due:
            yield sample(side)
            due = now + SAMPLE_S
        time.sleep(ASK_S)
    yield sample(side)


def stalled(turn: Turn) -> Figures:
    side, sizes, seconds = turn.side, turn.sizes, turn.sizes.stall_s
    assert isinstance(side, Ours)
    driver = side.client()
    ledgers = created(driver, 2)
    driver.ask("append_count", limit_s=LIMIT_S, ledgers=ledgers[:1], size=PAYLOAD_BYTES, count=sizes.warm_read_entries, window=WINDOW)
    flag = side.stalling[STALLED_DISK]
    reader = StalledReader(side.ports[UNREAD], ledgers[0])
    try:
        driver.send("append", ledgers=ledgers[1:], size=PAYLOAD_BYTES, window=WINDOW, seconds=seconds + 2)
        for _ in range(int(SAMPLE_S / ASK_S)):
            reader.ask()
            time.sleep(ASK_S)
        flag.touch()
        samples = list(samples_during(side, reader, seconds))
        flag.unlink()
        figures = driver.answer(LIMIT_S)
    finally:
        flag.unlink(missing_ok=True)
        reader.close()
    return {**figures, **judged(samples), "memory_mib": turn.sampler.of_bookies(max)}
