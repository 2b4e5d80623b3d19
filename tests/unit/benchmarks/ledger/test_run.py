"""The comparison around its measurements: clients that fail or are late, cases that lose entries, the plan."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ledger import cases, machine, stalled, stalling
from benchmarks.ledger.cases import FULL, QUICK, Case, Figures, Sizes, Turn
from benchmarks.ledger.machine import MemorySampler
from benchmarks.ledger.processes import CaseFailed, Driver
from benchmarks.ledger.ratios import Run, Runs, ratios
from benchmarks.ledger.run import DURABILITY, SIDES, Comparison, Planned, not_measured, plan, planned_runs
from benchmarks.ledger.table import CASES, case_rows, show
from triplicate.config import BookieSettings

ANSWERING = """
import json, sys, time
for line in sys.stdin:
    command = json.loads(line)
    if command["do"] == "leave":
        sys.exit("left")
    time.sleep(command.get("wait", 0))
    print(json.dumps({"error": "no"} if command["do"] == "fail" else {"ok": command}), flush=True)
"""


def driver(folder: Path) -> Driver:
    return Driver("client", [sys.executable, "-c", ANSWERING], folder / "client.log")


def test_a_client_answers_fails_and_goes_on(tmp_path: Path) -> None:
    client = driver(tmp_path)
    try:
        assert client.ask("hello", limit_s=30, what=1) == {"do": "hello", "what": 1}
        with pytest.raises(CaseFailed, match="client: no"):
            client.ask("fail", limit_s=30)
        assert client.ask("hello", limit_s=30)["do"] == "hello"
    finally:
        client.kill()
    assert not client.is_running


def test_a_late_client_is_killed(tmp_path: Path) -> None:
    client = driver(tmp_path)
    client.ask("hello", limit_s=30)
    with pytest.raises(CaseFailed, match="no answer within"):
        client.ask("hello", limit_s=0.05, wait=20)
    assert not client.is_running
    with pytest.raises(CaseFailed):
        client.ask("hello", limit_s=30)


def test_a_client_that_ends_says_why(tmp_path: Path) -> None:
    client = driver(tmp_path)
    with pytest.raises(CaseFailed, match="left"):
        client.ask("leave", limit_s=30)
    client.kill()


class Told:
    """A client that gives prepared answers."""

    is_running = True

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def ask(self, do: str, **arguments: Any) -> Any:
        return self.answers[do]


def test_reading_fewer_entries_than_were_written_is_no_measurement() -> None:
    whole = {"entries": 4, "bytes": 4 * cases.PAYLOAD_BYTES, "per_s": 1.0, "stopped": False}
    assert cases.read(Told(read=whole), 7, batch=False, count=4) == whole  # type: ignore[arg-type]
    with pytest.raises(CaseFailed, match="3 of 4"):
        cases.read(Told(read={**whole, "entries": 3}), 7, batch=False, count=4)  # type: ignore[arg-type]


def test_a_reading_that_was_stopped_may_have_read_less() -> None:
    part = {"entries": 3, "bytes": 3 * cases.PAYLOAD_BYTES, "per_s": 1.0, "stopped": True}
    assert cases.read(Told(read=part), 7, batch=False, count=4, seconds=1.0) == part  # type: ignore[arg-type]
    with pytest.raises(CaseFailed, match="3 of 3 entries were read, in 5 bytes"):
        cases.read(Told(read={**part, "bytes": 5}), 7, batch=False, count=4, seconds=1.0)  # type: ignore[arg-type]


def test_appends_of_which_none_was_acknowledged_are_no_measurement() -> None:
    none = Told(append={"count": 0}, append_rate={"count": 0})
    with pytest.raises(CaseFailed, match="no append"):
        cases.append_for(none, [7], 10, 1, 1.0)  # type: ignore[arg-type]
    with pytest.raises(CaseFailed, match="no append"):
        cases.append_at(none, [7], 10, 1.0)  # type: ignore[arg-type]


def test_a_case_needs_what_an_earlier_one_should_have_left() -> None:
    turn = Turn(None, QUICK, MemorySampler(dict))  # type: ignore[arg-type]
    with pytest.raises(CaseFailed, match="not there"):
        cases.catch_up(cold=True, batch=False)(turn)


@pytest.mark.parametrize("sizes", [QUICK, FULL])
def test_the_plan_measures_every_target_and_every_line_of_the_table(sizes: Sizes) -> None:
    runs = [done(planned, case) for planned in plan(sizes) for case, _ in planned.cases]
    assert None not in ratios(Runs(runs, 0.1, 100.0, planned_runs(sizes))).values()
    without_one = [run for run in runs if (run.side, run.case, run.round) != ("ours", "fill", 1)]
    assert ratios(Runs(without_one, 0.1, 100.0, planned_runs(sizes)))["memory_bounds"] is None
    assert {case for case, _, _ in CASES} <= {run.case for run in runs}


def done(planned: Planned, case: str) -> Run:
    names = ("per_s", "cpu_s_per_million", "p50_ms", "p99_ms", "append_p50_ms", "memory_mib", "start_s", "recovery_s")
    return Run(planned.side, case, planned.round, dict.fromkeys(names, 1.0), memory_mib={"bookie-1": 50.0})


def test_a_flush_of_each_bookie_falls_into_every_window_of_the_full_run() -> None:
    assert BookieSettings().flush_interval_s == cases.FLUSH_INTERVAL_S
    for windows in (FULL.ledger_windows, FULL.reader_windows):
        assert windows.measured_s == cases.FLUSH_INTERVAL_S
    # Such a flush writes entries that were appended just before, though the bookies were idle until then.
    assert FULL.ledger_windows.before_s == cases.FLUSH_INTERVAL_S
    for sizes in (QUICK, FULL):
        assert all(windows.count >= 3 for windows in (sizes.ledger_windows, sizes.reader_windows, sizes.their_windows))


def test_sides_take_turns() -> None:
    appending = [one.side for one in plan(QUICK) if one.group == "append"]
    assert appending == 2 * ["floor", "ours", "apache_shipped", "apache_advised", "crossed"]


def test_few_ledgers_are_the_first_that_their_bookies_hold() -> None:
    (turn,) = [turn for turn in plan(FULL) if turn.side == "ours" and "ledgers_few" in dict(turn.cases)]
    assert [case for case, _ in turn.cases] == ["ledgers_few", "ledgers_many"]


def test_what_is_read_is_measured_twice_in_the_full_run() -> None:
    assert [turn.side for turn in plan(FULL) if turn.group == "storage"] == 2 * ["ours", "apache_shipped", "apache_advised"]
    assert {turn.group for turn in plan(FULL)} == {"append", "storage", "at_once", "ledgers", "journal", "stalled"}


def test_memory_of_cases_that_only_prepare_is_kept(tmp_path: Path) -> None:
    comparison = Comparison(QUICK, tmp_path)
    planned = Planned("append", "ours", 1, ())

    class Here:
        def pids(self) -> dict[str, int]:
            return {"bookie-1": os.getpid()}

    def failing(_: Turn) -> Figures:
        raise CaseFailed("no")

    for name, case in (("fill", lambda _: {}), ("stalled", failing)):
        comparison._note(comparison._measured(Here(), planned, name, case, {}))  # type: ignore[arg-type]
    filled, failed = comparison.result().runs
    assert (filled.case, filled.figures) == ("fill", {})
    assert (failed.figures, failed.reason) == (None, "no")
    assert min(run.memory_mib["bookie-1"] for run in (filled, failed)) > 5


class Standing:
    """A side that only starts and stops."""

    def __init__(self, zookeeper: str, folder: Path, turn: str) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def pids(self) -> dict[str, int]:
        return {"bookie-1": os.getpid()}


def ended_process(_: Turn) -> Figures:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return {"cpu_s": machine.cpu_seconds({"bookie-1": process.pid})}


def failing_appends(_: Turn) -> Figures:
    raise CaseFailed("client: appends failed")


def no_file(_: Turn) -> Figures:
    raise FileNotFoundError("entries")


@pytest.mark.parametrize(
    ("failing", "reason"), [(failing_appends, "client: appends failed"), (ended_process, "bookie-1 has ended"), (no_file, "entries")]
)
def test_a_case_that_fails_is_noted_with_its_reason_and_the_run_goes_on(
    failing: Case, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SIDES, "apache_advised", Standing)
    comparison = Comparison(QUICK, tmp_path)
    comparison.take(Planned("ledgers", "apache_advised", 1, (("ledgers_few", failing), ("ledgers_many", lambda _: {"p99_ms": 1.0}))), "")
    failed, after = comparison.result().runs
    assert (failed.figures, failed.reason) == (None, reason)
    assert after.figures == {"p99_ms": 1.0}


def test_a_failed_case_that_no_target_needs_is_told_and_fails_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    failed = Run("apache_advised", "ledgers_many", 1, None, "client: an append failed: Not enough bookies")
    others = [done(planned, case) for planned in plan(FULL) for case, _ in planned.cases]
    runs = [failed if (run.side, run.case) == (failed.side, failed.case) else run for run in others]
    found = Runs(runs, 0.1, 100.0, planned_runs(FULL))
    assert not_measured(found) == []
    show(found, DURABILITY, quick=False)
    told = capsys.readouterr().out
    assert "not measured: ledgers_many of apache_advised, round 1: client: an append failed: Not enough bookies" in told
    row = next(row for row in case_rows(found, ["ours", "apache_advised"]) if row[0].startswith("many ledgers on disk"))
    assert row[2:] == ["1.00", "failed"]


def test_a_failed_case_that_a_target_needs_leaves_it_open() -> None:
    runs = [done(planned, case) for planned in plan(FULL) for case, _ in planned.cases]
    without = [run for run in runs if (run.side, run.case) != ("ours", "ledgers_few")]
    assert not_measured(Runs(without, 0.1, 100.0, planned_runs(FULL))) == ["p99_many_ledgers", "memory_many_ledgers", "memory_bounds"]


def looks(*pairs: tuple[float, float]) -> list[stalled.Sample]:
    return [stalled.Sample(*pair) for pair in pairs]


def test_a_stall_is_shown_by_answers_that_wait_and_entries_that_are_not_acknowledged() -> None:
    full = 2.0 * stalled.STALLED_ANSWERS_BYTES
    assert stalled.judged(looks((full, 70), (full + 1, 70)))["answers_waiting_mib"] == full / machine.MIB
    with pytest.raises(CaseFailed, match="reader was not stalled"):
        stalled.judged(looks((full, 70), (0, 70), (full, 70)))
    with pytest.raises(CaseFailed, match="acknowledged 2 entries"):
        stalled.judged(looks((full, 70), (full, 72)))
    with pytest.raises(CaseFailed, match="no entry before"):
        stalled.judged(looks((full, 0), (full, 0)))
    with pytest.raises(CaseFailed, match="too short"):
        stalled.judged(looks((full, 70)))


def test_a_stalled_reader_goes_on_where_it_was_stopped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = stalled.StalledReader(server.getsockname()[1], 7)
        peer, _ = server.accept()
        with peer:
            peer.settimeout(10)
            received = bytearray()
            while len(received) < 3 * len(reader._requests):
                reader.ask()
                received += peer.recv(10_007)
        reader.close()
    assert bytes(received[: 2 * len(reader._requests)]) == 2 * reader._requests


def test_pages_are_forgotten_of_what_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (8 * machine.PAGE_BYTES))
    sizes = machine.sizes_of([tmp_path])
    assert sizes == {path: 8 * machine.PAGE_BYTES}
    assert machine.cached_share(sizes) == 1.0
    if machine.make_cold([tmp_path]):
        pytest.skip("this file system keeps its pages in memory")
    with path.open("ab") as file:
        file.write(b"x" * (8 * machine.PAGE_BYTES))
    assert machine.cached_share(sizes) == machine.forget(sizes) == 0.0
    assert machine.cached_pages(path)[1] == 16
    assert machine.cached_share({tmp_path / "gone": 1}) == 0.0


def test_pages_in_the_cache_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (3 * machine.PAGE_BYTES + 1))
    assert machine.cached_pages(path) == (4, 4)
    path.write_bytes(b"")
    assert machine.cached_pages(path) == (0, 0)
    assert machine.make_cold([tmp_path]) == 0.0


def test_memory_and_processor_time_of_this_process_are_seen() -> None:
    pids = {"bookie-1": os.getpid()}
    before = machine.cpu_seconds(pids)
    with MemorySampler(lambda: pids) as sampler:
        sum(range(2_000_000))
    assert 5 < sampler.of_bookies(max) == sampler.peaks()["bookie-1"]
    assert machine.cpu_seconds(pids) > before


def test_a_stalled_disk_holds_up_calls_until_it_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            flag.unlink()

    monkeypatch.setattr("benchmarks.ledger.stalling.time.sleep", sleep)
    assert stalling.held_up(divmod, str(flag))(7, 2) == (3, 1)
    assert len(waits) == 3
    assert stalling.held_up(divmod, str(flag))(7, 2) == (3, 1)
    assert len(waits) == 3
