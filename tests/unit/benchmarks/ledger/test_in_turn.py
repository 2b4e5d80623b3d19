"""Windows of two states that alternate, and what is made of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ledger import in_turn
from benchmarks.ledger.cases import FLUSH_WAIT_S, PAYLOAD_BYTES, QUICK, Figures, Turn, Windows
from benchmarks.ledger.in_turn import MANY, Readings, alternated, once, over_windows
from benchmarks.ledger.machine import MemorySampler
from benchmarks.ledger.ours import Ours
from benchmarks.ledger.processes import CaseFailed


def turn(side: object = None, **kept: object) -> Turn:
    return Turn(side, QUICK, MemorySampler(dict), kept)  # type: ignore[arg-type]


def windows(*p99: float) -> list[Figures]:
    return [{"p50_ms": 1.0, "p99_ms": value} for value in p99]


def test_windows_of_two_states_alternate() -> None:
    order: list[str] = []

    def window(state: str) -> Figures:
        order.append(state)
        return {"p99_ms": float(len(order))}

    found = alternated({"A": lambda: window("A"), "B": lambda: window("B")}, 3)
    assert order == ["A", "B", "A", "B", "A", "B"]
    assert (found["A"]["p99_ms"], found["B"]["p99_ms"]) == (3.0, 4.0)


def test_a_stall_in_one_window_decides_nothing() -> None:
    calm, stalled = over_windows(windows(2.0, 3.0, 2.5)), over_windows(windows(2.0, 230.0, 2.5))
    assert calm["p99_ms"] == stalled["p99_ms"] == 2.5
    assert (stalled["p99_least_ms"], stalled["p99_most_ms"]) == (2.0, 230.0)
    assert [stalled[f"p99_ms_{number}"] for number in (1, 2, 3)] == [2.0, 230.0, 2.5]


def test_a_cost_in_every_window_counts() -> None:
    assert over_windows(windows(4.0, 6.0, 5.0))["p99_ms"] == 2 * over_windows(windows(2.0, 3.0, 2.5))["p99_ms"]


def test_figures_that_a_window_lacks_are_left_out() -> None:
    found = over_windows([{"p99_ms": 1.0, "read_per_s": 7.0}, {"p99_ms": 1.0}])
    assert set(found) == {"p99_ms", "p99_ms_1", "p99_ms_2", "p99_least_ms", "p99_most_ms"}


def test_two_states_are_measured_once_for_both_cases() -> None:
    here, measured = turn(), []

    def measure(_: Turn) -> dict[str, Figures]:
        measured.append(1)
        return {"A": {"p99_ms": 1.0}, "B": {"p99_ms": 2.0}}

    assert [once(here, "both", measure)[name]["p99_ms"] for name in ("A", "B")] == [1.0, 2.0]
    assert measured == [1]


@pytest.mark.parametrize("failure", [CaseFailed("no quorum"), OSError("no quorum")])
def test_two_states_fail_together_with_one_reason(failure: Exception) -> None:
    here, measured = turn(), []

    def measure(_: Turn) -> dict[str, Figures]:
        measured.append(1)
        raise failure

    for _ in ("A", "B"):
        with pytest.raises(CaseFailed, match="no quorum"):
            once(here, "both", measure)
    assert measured == [1]


class Reader:
    """Reads a thousand entries a second of a ledger with `entries` entries."""

    def __init__(self, entries: int) -> None:
        self.entries = entries
        self.asked: list[float] = []

    def ask(self, do: str, *, seconds: float, **_: Any) -> dict[str, Any]:
        assert do == "read"
        self.asked.append(seconds)
        stopped = seconds * 1000 < self.entries
        entries = int(seconds * 1000) if stopped else self.entries
        time.sleep(entries / 1000)
        return {"entries": entries, "bytes": entries * PAYLOAD_BYTES, "seconds": entries / 1000, "stopped": stopped}


def test_a_reader_reads_over_and_over_while_the_writers_write_and_no_longer() -> None:
    reader = Reader(50)
    readings = Readings(reader, 7, 50, {})  # type: ignore[arg-type]
    for _ in range(2):
        reader.asked.clear()
        figures = readings.beside(lambda: {"p99_ms": 1.0}, 0.12)
        assert figures["p99_ms"] == 1.0
        assert figures["read_per_s"] == pytest.approx(1000)
        assert len(reader.asked) >= 2
        assert all(later < earlier <= 0.12 for earlier, later in zip(reader.asked, reader.asked[1:], strict=False))
    assert readings.entries <= 240


def test_a_reader_that_fails_fails_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_turn, "forget", lambda _: 0.5)
    with pytest.raises(CaseFailed, match="of what is read stayed in the page cache"):
        Readings(Reader(50), 7, 50, {}).beside(dict, 0.05)  # type: ignore[arg-type]


def test_a_cluster_beside_another_has_its_own_place_and_counts_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    stopped: list[str] = []
    monkeypatch.setattr(Ours, "start", lambda self: started.append(self.turn))
    side = Ours("127.0.0.1:1", tmp_path / "side", "01-ledgers-ours")
    other = side.beside(MANY)
    assert started == ["01-ledgers-ours-many"]
    assert (other.uri, other.folder) == ("zk+hierarchical://127.0.0.1:1/01-ledgers-ours-many", tmp_path / "side-many")
    monkeypatch.setattr(Ours, "own_pids", lambda self: {"bookie-1": 1 if self is side else 2})
    assert side.pids() == {"bookie-1": 1, "bookie-1-many": 2}
    monkeypatch.setattr("benchmarks.ledger.processes.shutil.rmtree", lambda folder, **_: stopped.append(folder.name))
    side.stop()
    assert stopped == ["side-many", "side"]


def test_a_cluster_that_does_not_start_ends_with_the_one_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: Ours) -> None:
        raise CaseFailed("no")

    monkeypatch.setattr(Ours, "start", start)
    side = Ours("127.0.0.1:1", tmp_path / "side", "01-ledgers-ours")
    with pytest.raises(CaseFailed):
        side.beside(MANY)
    assert list(side.others) == [MANY]


class Cluster:
    """Of which nothing is asked, but memory that grows with its name."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.bookies = {"bookie-1": self}
        self.calls: list[str] = []

    def client(self, name: str = "client") -> Cluster:
        return self

    def stop(self) -> None:
        self.calls.append("stop")

    def start_bookie(self, name: str) -> float:
        self.calls.append("start")
        return 1.5

    def beside(self, name: str) -> Cluster:
        self.other = Cluster(name, self.folder)
        return self.other

    def own_pids(self) -> dict[str, int]:
        return {}


def test_few_and_many_ledgers_hold_as_much_and_are_measured_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = Cluster("ours", tmp_path)
    filled: list[tuple[str, int, int]] = []
    appended: list[tuple[str, float]] = []
    rested: list[float] = []

    def append_at(driver: Cluster, ledgers: list[int], rate: float, seconds: float) -> Figures:
        appended.append((driver.name, seconds))
        return {"count": 1.0, "p50_ms": 1.0, "p99_ms": 1.0 if driver is few else 3.0}

    class Sampler:
        def __init__(self, _: object) -> None:
            self.samples = {"bookie-1": [4.0, 6.0, 5.0], "client": [99.0]}

        def __enter__(self) -> Sampler:
            return self

        def __exit__(self, *_: object) -> None: ...

    for name, instead in {
        "append_at": append_at,
        "created": lambda *_: [7],
        "close": lambda *_: None,
        "fill_ledgers": lambda driver, ledgers, entries: filled.append((driver.name, ledgers, entries)),
        "MemorySampler": Sampler,
    }.items():
        monkeypatch.setattr(in_turn, name, instead)
    monkeypatch.setattr("benchmarks.ledger.in_turn.time.sleep", rested.append)
    here = turn(few)
    least, most = in_turn.ledgers_few(here), in_turn.ledgers_many(here)
    held = {name: sum(ledgers * entries for where, ledgers, entries in filled if where == name) for name in ("ours", MANY)}
    assert held["ours"] == held[MANY] == QUICK.ledgers_many * QUICK.entries_each
    assert rested == [FLUSH_WAIT_S]
    planned: Windows = QUICK.ledger_windows
    one_each = [(name, seconds) for name in ("ours", MANY) for seconds in (planned.before_s, planned.measured_s)]
    assert appended == one_each * planned.count
    assert (least["p99_ms"], most["p99_ms"]) == (1.0, 3.0)
    assert (most["memory_mib"], most["start_s"]) == (5.0, 1.5)
    assert few.calls == few.other.calls == ["stop", "start"]


def test_writers_with_and_without_readers_are_measured_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side, read_entries = Cluster("ours", tmp_path), 40.0
    order: list[str] = []

    class Noting:
        def __init__(self, *_: object) -> None:
            self.entries, self.cached_share = read_entries, 0.0

        def beside(self, write: Any, seconds: float) -> Figures:
            order.append("reader")
            assert seconds == QUICK.reader_windows.before_s + QUICK.reader_windows.measured_s
            return {**write(), "read_per_s": 9.0}

    def append_at(driver: Cluster, ledgers: list[int], rate: float, seconds: float) -> Figures:
        order.append(f"{seconds:g} s")
        return {"count": 1.0, "p50_ms": 1.0, "p99_ms": float(len(order))}

    for name, instead in {
        "append_at": append_at,
        "created": lambda *_: [7],
        "close": lambda *_: None,
        "cold_share": lambda _: 0.01,
        "sizes_of": lambda _: {},
        "read": lambda *_, **__: {},
        "Readings": Noting,
    }.items():
        monkeypatch.setattr(in_turn, name, instead)
    monkeypatch.setattr(Cluster, "ledger_folders", lambda _: [], raising=False)
    here = turn(side)
    here.kept.update({"ledger": 7, "warm ledger": 6})
    without, under = in_turn.without_readers(here), in_turn.under_readers(here)
    times = [f"{QUICK.reader_windows.before_s:g} s", f"{QUICK.reader_windows.measured_s:g} s"]
    assert order == [*times, "reader", *times] * QUICK.reader_windows.count
    assert "read_per_s" not in without
    assert (under["read_per_s"], under["readings"], under["cached_share"]) == (9.0, 40 / QUICK.read_entries, 0.01)
    read_entries = 0.0
    del here.kept["readers"]
    with pytest.raises(CaseFailed, match="nothing was read"):
        in_turn.under_readers(here)
