"""The measurements. Each is a function from a turn (a running side) to figures, and raises `CaseFailed` if it cannot measure."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.driving import WARM_UP_S
from benchmarks.ledger.machine import MIB, MemorySampler, cached_share, cpu_seconds, folder_bytes, make_cold, sizes_of
from benchmarks.ledger.ours import Floor, Ours
from benchmarks.ledger.processes import CaseFailed, Driver, Side

PAYLOAD_BYTES = 1024
WINDOW = 1000
QUORUMS = {"ensemble_size": 3, "write_quorum": 3, "ack_quorum": 2}
ONE_COPY = {"ensemble_size": 1, "write_quorum": 1, "ack_quorum": 1}
READ_CHUNK = 1024
EXPLICIT_LAC_MS = 1
LIMIT_S = 120.0
"""Limit of a command, in addition to the duration it is given."""
LIMIT_PER_LEDGER_S = 0.05
REGISTER_LIMIT_S = 30.0
FLUSH_INTERVAL_S = 10.0
"""Flush interval of both sides' bookies. A window of this length contains one flush of each bookie."""
REST_S = 1.0
"""A pause for a flush lasts this much longer than the flush interval."""
FLUSH_WAIT_S = FLUSH_INTERVAL_S + REST_S
COLD_SHARE = 0.02
COLD_SHARE_BESIDE_WRITERS = 0.1
"""Size of the ledger that a reader reads repeatedly; writers use the same files meanwhile."""
RATE_FOR_READERS = 1000

Figures = dict[str, float]


@dataclass(frozen=True)
class Windows:
    """Number of windows in which a latency is measured, of each of two compared states; see `in_turn`."""

    count: int
    measured_s: float
    before_s: float
    """Duration of the same load before the measurement."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of each case. Seconds are measured ones; the warm-up precedes them."""

    quick: bool
    rounds: int
    """Payload sizes of appends."""
    storage_rounds: int
    start_warm_s: float
    """Appends at full speed before the first case, for just-in-time compilers."""
    warm_s: float
    append_s: float
    rate_s: float
    read_entries: int
    warm_read_entries: int
    ledgers_at_once: int
    ledgers_few: int
    ledgers_many: int
    entries_each: int
    recovery_entries: int
    recoveries: int
    journal_entries: int
    stall_s: float
    ledger_windows: Windows
    """Few and many ledgers on disk. Each cluster is idle in the other's windows, so a flush writes the load before it."""
    reader_windows: Windows
    their_windows: Windows
    """Windows of Apache's bookies, printed beside comparisons of ours with ours; no target depends on them."""
    their_rest_s: float
    """Pause before these windows, where ours pause for a flush."""
    limit_s: float
    """Limit of the whole run."""


FULL = Sizes(
    quick=False,
    rounds=3,
    storage_rounds=2,
    start_warm_s=8.0,
    warm_s=2.0,
    append_s=5.0,
    rate_s=8.0,
    read_entries=1 << 20,
    warm_read_entries=1 << 16,
    ledgers_at_once=1000,
    ledgers_few=100,
    ledgers_many=10_000,
    entries_each=5,
    recovery_entries=100_000,
    recoveries=3,
    journal_entries=1 << 20,
    stall_s=30.0,
    ledger_windows=Windows(count=5, measured_s=FLUSH_INTERVAL_S, before_s=FLUSH_INTERVAL_S),
    reader_windows=Windows(count=5, measured_s=FLUSH_INTERVAL_S, before_s=2.0),
    their_windows=Windows(count=3, measured_s=5.0, before_s=2.0),
    their_rest_s=FLUSH_WAIT_S,
    limit_s=45 * 60.0,
)
QUICK = Sizes(
    quick=True,
    rounds=2,
    storage_rounds=1,
    start_warm_s=5.0,
    warm_s=0.5,
    append_s=1.5,
    rate_s=2.5,
    read_entries=1 << 16,
    warm_read_entries=1 << 14,
    ledgers_at_once=200,
    ledgers_few=50,
    ledgers_many=1000,
    entries_each=5,
    recovery_entries=20_000,
    recoveries=2,
    journal_entries=1 << 17,
    stall_s=8.0,
    ledger_windows=Windows(count=5, measured_s=1.5, before_s=0.5),
    reader_windows=Windows(count=5, measured_s=1.5, before_s=0.5),
    their_windows=Windows(count=3, measured_s=1.0, before_s=0.5),
    their_rest_s=3.5,
    limit_s=10 * 60.0,
)


@dataclass
class Turn:
    """A running side. `kept` holds values that one case leaves for the next."""

    side: Side
    sizes: Sizes
    sampler: MemorySampler
    kept: dict[str, Any] = field(default_factory=dict)

    def left(self, name: str) -> Any:
        if name not in self.kept:
            raise CaseFailed("what an earlier case should have left is not there")
        return self.kept[name]


Case = Callable[[Turn], Figures]


def created(driver: Driver, count: int = 1, quorums: dict[str, int] | None = None) -> list[int]:
    """Create ledgers; retries while newly started bookies are not registered yet."""
    deadline = time.monotonic() + REGISTER_LIMIT_S
    while True:
        try:
            limit_s = LIMIT_S + count * LIMIT_PER_LEDGER_S
            ledgers: list[int] = driver.ask("create", limit_s=limit_s, count=count, **(quorums or QUORUMS))["ledgers"]
        except CaseFailed:
            if time.monotonic() > deadline or not driver.is_running:
                raise
            time.sleep(0.3)
        else:
            return ledgers


def append_for(driver: Driver, ledgers: list[int], size: int, window: int, seconds: float) -> Figures:
    return counted(driver.ask("append", limit_s=seconds + LIMIT_S, ledgers=ledgers, size=size, window=window, seconds=seconds))


def append_at(driver: Driver, ledgers: list[int], rate: float, seconds: float) -> Figures:
    limit_s, count = seconds + LIMIT_S, int(rate * seconds)
    return counted(driver.ask("append_rate", limit_s=limit_s, ledgers=ledgers, size=PAYLOAD_BYTES, rate=rate, count=count))


def counted(figures: Figures) -> Figures:
    """Raise CaseFailed if the figures contain no measurement, and so neither a rate nor latencies."""
    if not figures["count"]:
        raise CaseFailed("no append was acknowledged")
    return figures


def close(driver: Driver, count: int = 1) -> None:
    driver.ask("close", limit_s=LIMIT_S + count * LIMIT_PER_LEDGER_S)


def warm_up(turn: Turn) -> Figures:
    """Unmeasured warm-up: the first seconds of a side at full speed, and a short recovery and read."""
    driver = turn.side.client()
    ledgers = created(driver)
    append_for(driver, ledgers, PAYLOAD_BYTES, WINDOW, turn.sizes.start_warm_s)
    close(driver)
    return {}


def append(size: int) -> Case:
    """Append at full speed; with processor time of all processes."""

    def case(turn: Turn) -> Figures:
        sizes, side = turn.sizes, turn.side
        if isinstance(side, Floor):
            return on_floor(side, size, WINDOW, sizes.append_s)
        driver = side.client()
        ledgers = created(driver)
        append_for(driver, ledgers, size, WINDOW, sizes.warm_s)
        before = cpu_seconds(side.pids())
        figures = append_for(driver, ledgers, size, WINDOW, sizes.append_s)
        spent = cpu_seconds(side.pids()) - before
        close(driver)
        return {**figures, "cpu_s_per_million": 1e6 * spent / figures["count"]}

    return case


def on_floor(side: Floor, size: int, window: int, seconds: float) -> Figures:
    before = cpu_seconds(side.pids())
    figures = side.run(size, window, seconds)
    # The servers' share includes the client's warm-up, in proportion.
    servers = (cpu_seconds(side.pids()) - before) * seconds / (seconds + WARM_UP_S)
    spent = servers + figures["client_cpu_s"]
    named = {"per_s": figures["appends_per_s"], "count": figures["appends"], "cpu_s_per_million": 1e6 * spent / figures["appends"]}
    return {**named, "p50_ms": figures["p50_ms"], "p99_ms": figures["p99_ms"], "seconds": figures["seconds"]}


def window_1(turn: Turn) -> Figures:
    sizes, side = turn.sizes, turn.side
    if isinstance(side, Floor):
        return on_floor(side, PAYLOAD_BYTES, 1, sizes.append_s)
    driver = side.client()
    ledgers = created(driver)
    append_for(driver, ledgers, PAYLOAD_BYTES, 1, sizes.warm_s)
    figures = append_for(driver, ledgers, PAYLOAD_BYTES, 1, sizes.append_s)
    close(driver)
    return figures


def rate(per_s: float) -> Case:
    """Append at a fixed rate (open loop)."""

    def case(turn: Turn) -> Figures:
        driver = turn.side.client()
        ledgers = created(driver)
        append_at(driver, ledgers, per_s, turn.sizes.warm_s)
        figures = append_at(driver, ledgers, per_s, turn.sizes.rate_s)
        close(driver)
        return figures

    return case


def tail(turn: Turn) -> Figures:
    """Latency from the instant at which an append is due to its arrival at a reader in another process."""
    side, sizes, per_s = turn.side, turn.sizes, 1000
    writer, reader = side.client(), side.client("tailer")
    for driver in (writer, reader):
        side.connect(driver, explicit_lac_ms=EXPLICIT_LAC_MS)
    try:
        ledgers, done, figures = created(writer), 0, {}
        # The reader has no entry to follow before the first one.
        append_at(writer, ledgers, per_s, 0.01)
        done = 10
        for seconds in (2 * sizes.warm_s, sizes.rate_s):
            count = int(per_s * seconds)
            reader.send("tail", ledger=ledgers[0], first=done, count=count)
            # The reader has opened the ledger before the first entry; otherwise its own start would be measured.
            time.sleep(0.3)
            appended = append_at(writer, ledgers, per_s, seconds)
            figures = {**reader.answer(LIMIT_S), "append_p50_ms": appended["p50_ms"], "append_p99_ms": appended["p99_ms"]}
            done += count
        close(writer)
    finally:
        if writer.is_running:
            side.connect(writer)
    return figures


def one_ledger(turn: Turn) -> Figures:
    driver = turn.side.client()
    ledgers = created(driver)
    append_for(driver, ledgers, PAYLOAD_BYTES, WINDOW, turn.sizes.warm_s)
    figures = append_for(driver, ledgers, PAYLOAD_BYTES, WINDOW, turn.sizes.append_s)
    close(driver)
    return figures


def many_ledgers(turn: Turn) -> Figures:
    """Append to many ledgers, with the same total window as for one ledger."""
    driver = turn.side.client()
    ledgers = created(driver, turn.sizes.ledgers_at_once)
    append_for(driver, ledgers, PAYLOAD_BYTES, WINDOW, turn.sizes.warm_s)
    figures = append_for(driver, ledgers, PAYLOAD_BYTES, WINDOW, turn.sizes.append_s)
    close(driver)
    return figures


def fill(turn: Turn) -> Figures:
    """Write the ledger that the following cases read, flush it out of the write caches, and warm up the readers."""
    driver, sizes = turn.side.client(), turn.sizes
    ledgers = created(driver, 2)
    for ledger, count in zip(ledgers, (sizes.warm_read_entries, sizes.read_entries), strict=True):
        limit_s = LIMIT_S + 2 * sizes.read_entries / 10_000
        driver.ask("append_count", limit_s=limit_s, ledgers=[ledger], size=PAYLOAD_BYTES, count=count, window=WINDOW)
    close(driver)
    time.sleep(FLUSH_WAIT_S)
    for batch in (False, True) if turn.side.reads_batches else (False,):
        read(driver, ledgers[0], batch=batch, count=sizes.warm_read_entries)
    turn.kept["warm ledger"], turn.kept["ledger"] = ledgers
    return {}


def read(driver: Driver, ledger: int, *, batch: bool, count: int, seconds: float | None = None) -> Figures:
    """Read the whole ledger, or as much of it as arrives within `seconds`."""
    time_limit = {} if seconds is None else {"seconds": seconds}
    limit_s = LIMIT_S + (count / 5000 if seconds is None else seconds)
    figures: Figures = driver.ask("read", limit_s=limit_s, ledger=ledger, batch=batch, chunk=READ_CHUNK, **time_limit)
    expected = figures["entries"] if figures["stopped"] else count
    if (figures["entries"], figures["bytes"]) != (expected, expected * PAYLOAD_BYTES):
        raise CaseFailed(f"{figures['entries']:.0f} of {expected:.0f} entries were read, in {figures['bytes']:.0f} bytes")
    return figures


def catch_up(*, cold: bool, batch: bool) -> Case:
    """Read the whole ledger with one reader."""

    def case(turn: Turn) -> Figures:
        ledger, side = turn.left("ledger"), turn.side
        if cold:
            cold_share(turn)
        share = cached_share(sizes_of(side.ledger_folders()))
        driver = side.client()
        before = cpu_seconds(side.pids())
        figures = read(driver, ledger, batch=batch, count=turn.sizes.read_entries)
        spent = cpu_seconds(side.pids()) - before
        after = cached_share(sizes_of(side.ledger_folders()))
        shares = {"cached_share": share, "cached_share_after": after}
        return {**figures, "cpu_s_per_million": 1e6 * spent / figures["entries"], **shares}

    return case


def cold_share(turn: Turn) -> float:
    share = make_cold(turn.side.data_folders())
    if share > COLD_SHARE:
        raise CaseFailed(f"{share:.1%} of the files' pages stayed in the page cache")
    return share


def recovery(turn: Turn) -> Figures:
    """Recover a ledger whose writer was killed with a full window."""
    side, sizes, times = turn.side, turn.sizes, []
    recoverer = side.client()
    for _ in range(sizes.recoveries + 1):
        writer = side.client("writer")
        ledgers = created(writer)
        count = sizes.recovery_entries
        writer.ask("append_count", limit_s=LIMIT_S, ledgers=ledgers, size=PAYLOAD_BYTES, count=count, window=WINDOW)
        writer.send("append", ledgers=ledgers, size=PAYLOAD_BYTES, window=WINDOW, seconds=60)
        time.sleep(0.2)
        writer.kill()
        answer = recoverer.ask("recover", limit_s=LIMIT_S, ledger=ledgers[0])
        if answer["last_entry_id"] < count - 1:
            raise CaseFailed(f"the ledger ends at {answer['last_entry_id']}, though {count} entries were acknowledged")
        times.append(answer["seconds"])
    # The first one is a warm-up.
    return {"recovery_s": statistics.median(times[1:]), "most_s": max(times[1:])}


def start_full_journal(turn: Turn) -> Figures:
    """Restart a killed bookie whose journal holds every entry and whose entry logs are empty, with its usual settings."""
    side, sizes, name = turn.side, turn.sizes, "bookie-1"
    assert isinstance(side, Ours)
    driver = side.client()
    ledgers = created(driver, quorums=ONE_COPY)
    limit_s = LIMIT_S + sizes.journal_entries / 5000
    driver.ask("append_count", limit_s=limit_s, ledgers=ledgers, size=PAYLOAD_BYTES, count=sizes.journal_entries, window=WINDOW)
    side.bookies[name].kill()
    journal = folder_bytes(side.folder / name / "journal")
    if journal < sizes.journal_entries * PAYLOAD_BYTES:
        raise CaseFailed(f"the journal holds {journal} bytes only")
    side.more.clear()
    turn.sampler.samples.clear()
    start_s = side.start_bookie(name)
    last = driver.ask("recover", limit_s=LIMIT_S, ledger=ledgers[0])["last_entry_id"]
    if last != sizes.journal_entries - 1:
        raise CaseFailed(f"the ledger ends at {last} after the restart, though {sizes.journal_entries} entries were acknowledged")
    return {"start_s": start_s, "journal_mib": journal / MIB}
