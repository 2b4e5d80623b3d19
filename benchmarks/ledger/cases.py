"""The measurements. Each takes a turn, a side that runs, and gives figures; what cannot be measured raises `CaseFailed`."""

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
"""For a command, beside the time that it is told to take."""
LIMIT_PER_LEDGER_S = 0.05
REGISTER_LIMIT_S = 30.0
FLUSH_INTERVAL_S = 10.0
"""Of either side's bookies. A window of so much has one flush of each bookie in it."""
REST_S = 1.0
"""A rest for a flush takes so much longer than its interval."""
FLUSH_WAIT_S = FLUSH_INTERVAL_S + REST_S
COLD_SHARE = 0.02
COLD_SHARE_BESIDE_WRITERS = 0.1
"""Of what a reader reads over and over; writers use the same files meanwhile."""
RATE_FOR_READERS = 1000

Figures = dict[str, float]


@dataclass(frozen=True)
class Windows:
    """In which a latency is measured, of each of two states that are compared; see `in_turn`."""

    count: int
    measured_s: float
    before_s: float
    """The same load, not measured."""


@dataclass(frozen=True)
class Sizes:
    """How much each case does. Seconds are those that are measured; warming up comes before."""

    quick: bool
    rounds: int
    """Of appends."""
    storage_rounds: int
    start_warm_s: float
    """Appends at full speed before the first case, for compilers to do their work."""
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
    """Few and many ledgers on disk. Their bookies rest in each other's windows, so the load before is what a flush has to write."""
    reader_windows: Windows
    their_windows: Windows
    """Of Apache's, which stand beside comparisons of ours with ours: no target is reckoned from them."""
    their_rest_s: float
    """Before these, where ours rest for a flush."""
    limit_s: float
    """For the whole run."""


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
    """A side while it runs. `kept` holds what one case leaves for the next."""

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
    """Ledgers; bookies that just started may not be registered yet."""
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
    """What nothing was measured of has neither a rate nor latencies."""
    if not figures["count"]:
        raise CaseFailed("no append was acknowledged")
    return figures


def close(driver: Driver, count: int = 1) -> None:
    driver.ask("close", limit_s=LIMIT_S + count * LIMIT_PER_LEDGER_S)


def warm_up(turn: Turn) -> Figures:
    """Not measured: the first seconds of a side at full speed, and a short recovery and reading."""
    driver = turn.side.client()
    ledgers = created(driver)
    append_for(driver, ledgers, PAYLOAD_BYTES, WINDOW, turn.sizes.start_warm_s)
    close(driver)
    return {}


def append(size: int) -> Case:
    """At full speed, with processor time of all processes."""

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
    # The servers worked during the client's warm-up as well, in proportion.
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
    """Open loop."""

    def case(turn: Turn) -> Figures:
        driver = turn.side.client()
        ledgers = created(driver)
        append_at(driver, ledgers, per_s, turn.sizes.warm_s)
        figures = append_at(driver, ledgers, per_s, turn.sizes.rate_s)
        close(driver)
        return figures

    return case


def tail(turn: Turn) -> Figures:
    """From the instant at which an append is due to its arrival at a reader in another process."""
    side, sizes, per_s = turn.side, turn.sizes, 1000
    writer, reader = side.client(), side.client("tailer")
    for driver in (writer, reader):
        side.connect(driver, explicit_lac_ms=EXPLICIT_LAC_MS)
    try:
        ledgers, done, figures = created(writer), 0, {}
        # Nothing is there to be followed before the first entry.
        append_at(writer, ledgers, per_s, 0.01)
        done = 10
        for seconds in (2 * sizes.warm_s, sizes.rate_s):
            count = int(per_s * seconds)
            reader.send("tail", ledger=ledgers[0], first=done, count=count)
            # It has opened the ledger when the first entry comes; what it missed by then would only show its own start.
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
    """As many entries under way as with one ledger, spread over all of them."""
    driver = turn.side.client()
    ledgers = created(driver, turn.sizes.ledgers_at_once)
    append_for(driver, ledgers, PAYLOAD_BYTES, WINDOW, turn.sizes.warm_s)
    figures = append_for(driver, ledgers, PAYLOAD_BYTES, WINDOW, turn.sizes.append_s)
    close(driver)
    return figures


def fill(turn: Turn) -> Figures:
    """The ledger that the following cases read, out of the write caches; and some reading for compilers."""
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
    """The whole ledger, or what comes of it in so many seconds."""
    time_limit = {} if seconds is None else {"seconds": seconds}
    limit_s = LIMIT_S + (count / 5000 if seconds is None else seconds)
    figures: Figures = driver.ask("read", limit_s=limit_s, ledger=ledger, batch=batch, chunk=READ_CHUNK, **time_limit)
    expected = figures["entries"] if figures["stopped"] else count
    if (figures["entries"], figures["bytes"]) != (expected, expected * PAYLOAD_BYTES):
        raise CaseFailed(f"{figures['entries']:.0f} of {expected:.0f} entries were read, in {figures['bytes']:.0f} bytes")
    return figures


def catch_up(*, cold: bool, batch: bool) -> Case:
    """The whole ledger, by one reader."""

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
    """The writer is killed with its window full."""
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
    # The first is for compilers.
    return {"recovery_s": statistics.median(times[1:]), "most_s": max(times[1:])}


def start_full_journal(turn: Turn) -> Figures:
    """A bookie is killed whose journal holds all and whose entry logs nothing, and starts with its usual settings."""
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
