"""Comparisons of two states of our bookies: both clusters exist at once, and their windows alternate, A B A B.

A state's p99 is the median over its windows. An occasional stall of the disk, which hits all bookies at the same instant, affects one
window. The cost of a state affects all its windows.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.ledger.cases import (
    COLD_SHARE_BESIDE_WRITERS,
    FLUSH_WAIT_S,
    LIMIT_PER_LEDGER_S,
    LIMIT_S,
    PAYLOAD_BYTES,
    RATE_FOR_READERS,
    WINDOW,
    Figures,
    Turn,
    append_at,
    close,
    cold_share,
    created,
    read,
)
from benchmarks.ledger.machine import MIB, RESERVE, MemorySampler, forget, sizes_of
from benchmarks.ledger.ours import Ours
from benchmarks.ledger.processes import FAILURES, CaseFailed, Driver, Side

MANY = "many"
"""Name of the second cluster of a turn, which holds many ledgers."""


def alternated(states: Mapping[str, Callable[[], Figures]], count: int) -> dict[str, Figures]:
    """Measure `windows` windows of each state, alternating."""
    taken: dict[str, list[Figures]] = {name: [] for name in states}
    for _ in range(count):
        for name, window in states.items():
            taken[name].append(window())
    return {name: over_windows(windows) for name, windows in taken.items()}


def over_windows(windows: Sequence[Figures]) -> Figures:
    """The median of each figure that all windows have; also the p99 of each window, in the order of measurement."""
    common = [name for name in windows[0] if all(name in window for window in windows)]
    figures = {name: statistics.median(window[name] for window in windows) for name in common}
    p99 = [window["p99_ms"] for window in windows]
    each = {f"p99_ms_{number}": value for number, value in enumerate(p99, 1)}
    return {**figures, "p99_least_ms": min(p99), "p99_most_ms": max(p99), **each}


def once(turn: Turn, name: str, measure: Callable[[Turn], dict[str, Figures]]) -> dict[str, Figures]:
    """Two cases are measured together, in the turn of the first one. A failure counts for both."""
    if name not in turn.kept:
        try:
            turn.kept[name] = measure(turn)
        except FAILURES as failure:
            turn.kept[name] = CaseFailed(str(failure))
    found: dict[str, Figures] | CaseFailed = turn.kept[name]
    if isinstance(found, CaseFailed):
        raise found
    return found


def is_ours(turn: Turn) -> bool:
    return turn.side.name == Ours.name


def fill_ledgers(driver: Driver, ledgers: int, entries: int) -> None:
    names = created(driver, ledgers)
    limit_s = LIMIT_S + ledgers * LIMIT_PER_LEDGER_S
    driver.ask("append_count", limit_s=limit_s, ledgers=names, size=PAYLOAD_BYTES, count=entries, window=WINDOW)
    close(driver, ledgers)


def index_mib(ledgers: Path) -> float:
    """Bytes in a bookie's ledger directory except entry logs (ours end in .entries, Apache's are current/*.log) and the reserve."""
    total = 0
    for path in ledgers.rglob("*"):
        is_log = path.suffix == ".entries" or (path.suffix == ".log" and path.parent.name == "current")
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and not is_log and path.name != RESERVE:
                total += path.stat().st_size
    return total / MIB


class OnDisk:
    """A cluster with its ledgers on disk, and a further ledger that receives the appends of each window."""

    def __init__(self, turn: Turn, side: Side) -> None:
        self._side = side
        self._windows = turn.sizes.ledger_windows if is_ours(turn) else turn.sizes.their_windows
        self._driver = side.client()
        self._ledgers = created(self._driver)
        self._memory: dict[str, list[float]] = {}

    def window(self) -> Figures:
        append_at(self._driver, self._ledgers, RATE_FOR_READERS, self._windows.before_s)
        with MemorySampler(self._side.own_pids) as sampler:
            figures = append_at(self._driver, self._ledgers, RATE_FOR_READERS, self._windows.measured_s)
        for name, samples in sampler.samples.items():
            self._memory.setdefault(name, []).extend(samples)
        return {name: figures[name] for name in ("p50_ms", "p99_ms")}

    def finished(self) -> Figures:
        """Memory over all windows, size of files other than entry logs, and duration of a start."""
        close(self._driver)
        memory = max(statistics.median(samples) for name, samples in self._memory.items() if name.startswith("bookie"))
        self._side.bookies["bookie-1"].stop()
        index = index_mib(self._side.folder / "bookie-1" / "ledgers")
        return {"memory_mib": memory, "index_mib": index, "start_s": self._side.start_bookie("bookie-1")}


def ledgers_compared(turn: Turn) -> dict[str, Figures]:
    """Compare two clusters with the same bytes, one in few ledgers and a large one, the other in many. The other cluster is idle."""
    sizes = turn.sizes
    few, many = turn.side, turn.side.beside(MANY)
    fill_ledgers(few.client(), sizes.ledgers_few, sizes.entries_each)
    fill_ledgers(few.client(), 1, (sizes.ledgers_many - sizes.ledgers_few) * sizes.entries_each)
    fill_ledgers(many.client(), sizes.ledgers_many, sizes.entries_each)
    time.sleep(FLUSH_WAIT_S if is_ours(turn) else sizes.their_rest_s)
    states = {"few": OnDisk(turn, few), "many": OnDisk(turn, many)}
    count = (sizes.ledger_windows if is_ours(turn) else sizes.their_windows).count
    figures = alternated({name: state.window for name, state in states.items()}, count)
    return {name: {**figures[name], **state.finished()} for name, state in states.items()}


def ledgers_few(turn: Turn) -> Figures:
    return once(turn, "ledgers on disk", ledgers_compared)["few"]


def ledgers_many(turn: Turn) -> Figures:
    return once(turn, "ledgers on disk", ledgers_compared)["many"]


class Readings:
    """A reader that reads a ledger repeatedly, from the beginning and from cold files, during a window of the writers."""

    def __init__(self, reader: Driver, ledger: int, count: int, files: Mapping[Path, int]) -> None:
        self._reader = reader
        self._ledger = ledger
        self._count = count
        self._files = files
        self._failures: list[Exception] = []
        self.entries = 0.0
        self.seconds = 0.0
        self.cached_share = 0.0

    def beside(self, write: Callable[[], Figures], seconds: float) -> Figures:
        """Run `write`, which lasts `seconds`, with the concurrent reader. Only entries read by then count."""
        thread = threading.Thread(target=self._read_for, args=(seconds,), name="reader", daemon=True)
        before_entries, before_seconds = self.entries, self.seconds
        thread.start()
        try:
            figures = write()
        finally:
            thread.join()
        if self._failures:
            raise self._failures[0]
        return {**figures, "read_per_s": (self.entries - before_entries) / (self.seconds - before_seconds)}

    def _read_for(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        try:
            while True:
                self.cached_share = max(self.cached_share, forget(self._files))
                if self.cached_share > COLD_SHARE_BESIDE_WRITERS:
                    raise CaseFailed(f"{self.cached_share:.1%} of what is read stayed in the page cache")
                left = ends - time.monotonic()
                if left <= 0:
                    return
                figures = read(self._reader, self._ledger, batch=False, count=self._count, seconds=left)
                self.entries += figures["entries"]
                self.seconds += figures["seconds"]
        except FAILURES as failure:
            self._failures.append(failure)


def readers_compared(turn: Turn) -> dict[str, Figures]:
    """One writer, without and with a concurrent reader of an existing ledger."""
    ledger, side, count = turn.left("ledger"), turn.side, turn.sizes.read_entries
    windows = turn.sizes.reader_windows if is_ours(turn) else turn.sizes.their_windows
    driver, reader = side.client(), side.client("reader")
    # Warm-up of the reading process.
    read(reader, turn.left("warm ledger"), batch=False, count=turn.sizes.warm_read_entries)
    share = cold_share(turn)
    # The files are synced by now, so the kernel can drop them without a sync that delays the writers. The writers' files stay.
    readings = Readings(reader, ledger, count, sizes_of(side.ledger_folders()))
    ledgers = created(driver)

    def without() -> Figures:
        append_at(driver, ledgers, RATE_FOR_READERS, windows.before_s)
        return append_at(driver, ledgers, RATE_FOR_READERS, windows.measured_s)

    def under() -> Figures:
        return readings.beside(without, windows.before_s + windows.measured_s)

    figures = alternated({"without": without, "under": under}, windows.count)
    close(driver)
    if not readings.entries:
        raise CaseFailed("nothing was read while the writers wrote")
    figures["under"].update(readings=readings.entries / count, cached_share=max(share, readings.cached_share))
    return figures


def without_readers(turn: Turn) -> Figures:
    return once(turn, "readers", readers_compared)["without"]


def under_readers(turn: Turn) -> Figures:
    return once(turn, "readers", readers_compared)["under"]
