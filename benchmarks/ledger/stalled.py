"""Full load while the disk of one bookie hangs and a reader of another takes no answers: how much memory each bookie then has.

That both were stalled is shown by the bookies' own metrics, or the case fails.
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
LOOK_S = 1.0
STALLED_ANSWERS_BYTES = BookieSettings().answers_per_connection_bytes // 2
"""So much of the room for answers is full at every look, or the reader was not stalled."""
ANSWERS = "bookie_answers_waiting_bytes_max"
ACKNOWLEDGED = 'bookkeeper_server_ADD_ENTRY_total{status="OK"}'


class StalledReader:
    """Asks one bookie for all of a ledger again and again, and takes nothing of what comes."""

    def __init__(self, port: int, ledger: int) -> None:
        self._socket = socket.socket()
        # Little is enough for the kernels between the two, so that answers wait in the bookie.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._socket.settimeout(5)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setblocking(False)
        self._requests = b"".join(encode_request(BatchReadRequest(ledger, 0, number, 5000, 4 * MIB)) for number in range(REQUESTS))
        self._sent = 0

    def ask(self) -> None:
        """As much as is taken now; the next time goes on where this ended, in the midst of a request if need be."""
        try:
            while True:
                self._sent += self._socket.send(memoryview(self._requests)[self._sent :])
                self._sent %= len(self._requests)
        except BlockingIOError:
            return

    def close(self) -> None:
        self._socket.close()


@dataclass(frozen=True)
class Look:
    """What two bookies' metrics say at one moment."""

    answers_bytes: float
    """Waiting for the reader that takes none, in its bookie."""
    acknowledged: float
    """Entries so far, by the bookie whose disk hangs."""


def metric(port: int, name: str) -> float:
    """Raises CaseFailed when the metrics are not there, or do not have that one."""
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


def look(side: Ours) -> Look:
    return Look(metric(side.metrics_ports[UNREAD], ANSWERS), metric(side.metrics_ports[STALLED_DISK], ACKNOWLEDGED))


def judged(looks: list[Look]) -> Figures:
    """What shows that both were stalled.

    Raises:
        CaseFailed: one of them was not, or there was no time to see it.
    """
    if len(looks) < 2:
        raise CaseFailed("the stall was too short to be looked at twice")
    least = min(one.answers_bytes for one in looks)
    if least < STALLED_ANSWERS_BYTES:
        raise CaseFailed(f"the reader was not stalled: only {least:.0f} bytes of answers waited for it in {UNREAD}")
    acknowledged = looks[-1].acknowledged - looks[0].acknowledged
    if not looks[0].acknowledged:
        raise CaseFailed(f"the disk stalled nothing: {STALLED_DISK} had acknowledged no entry before")
    if acknowledged:
        raise CaseFailed(f"the disk was not stalled: {STALLED_DISK} acknowledged {acknowledged:.0f} entries meanwhile")
    return {"answers_waiting_mib": least / MIB, "stalled_looks": len(looks)}


def looks_during(side: Ours, reader: StalledReader, seconds: float) -> Iterator[Look]:
    """What is under way when the stall begins has its first second to end; the last look is at the end."""
    ends = time.monotonic() + seconds
    due = time.monotonic() + min(LOOK_S, seconds / 3)
    while (now := time.monotonic()) < ends:
        reader.ask()
        if now >= due:
            yield look(side)
            due = now + LOOK_S
        time.sleep(ASK_S)
    yield look(side)


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
        for _ in range(int(LOOK_S / ASK_S)):
            reader.ask()
            time.sleep(ASK_S)
        flag.touch()
        looks = list(looks_during(side, reader, seconds))
        flag.unlink()
        figures = driver.answer(LIMIT_S)
    finally:
        flag.unlink(missing_ok=True)
        reader.close()
    return {**figures, **judged(looks), "memory_mib": turn.sampler.of_bookies(max)}
