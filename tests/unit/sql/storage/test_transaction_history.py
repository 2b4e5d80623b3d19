"""Past transactions are kept for a time, and older requests are refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.rowlog_workload import contents
from tests.unit.sql.history_rig import DAY_MS, START_MS, TimedPair, replay, to_format_1, without_time
from triplicate.sql.core.request_ids import issued_ms
from triplicate.sql.storage import transaction_history
from triplicate.sql.storage.sqlite_file import open_store, open_writer, record_batch
from triplicate.sql.storage.transaction_history import CommitRecord, RequestLimits, committed, read_history

UNDATED = "order-4711"
DATED = f"{START_MS}:order-4711"
UUID_7 = f"{START_MS >> 16:08x}-{START_MS & 0xFFFF:04x}-7abc-9def-0123456789ab"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[TimedPair]:
    with_table = TimedPair(tmp_path)
    with_table.run("create table t(id integer primary key autoincrement, v)")
    yield with_table
    with_table.close()


def test_the_time_of_a_dated_id_is_read_from_it() -> None:
    assert issued_ms(DATED) == START_MS
    assert issued_ms(UUID_7) == issued_ms(UUID_7.upper()) == START_MS
    for undated in (UNDATED, f"{START_MS}", f"{START_MS}:", f"1{START_MS}:x", UUID_7.replace("-7", "-4"), UUID_7 + "0"):
        assert issued_ms(undated) is None


@pytest.mark.parametrize("request_id", [UNDATED, DATED, UUID_7])
def test_a_request_is_not_run_again_within_a_day_however_many_records_follow(
    pair: TimedPair, request_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_history, "KEPT_POSITIONS", 10)
    first = pair.pay(request_id)[0].outcome
    for _ in range(3):
        pair.run("update t set v = v", count=1000)
    pair.now_ms += DAY_MS - 1
    assert pair.pay(request_id)[0].outcome == first
    assert pair.count() == [(1,), (1,)]
    assert contents(pair.paths[0]) == contents(pair.paths[1])


@pytest.mark.parametrize("request_id", [UNDATED, DATED, UUID_7])
def test_a_request_older_than_what_is_kept_is_refused_on_every_later_leader(pair: TimedPair, request_id: str) -> None:
    pair.pay(request_id)
    pair.now_ms += DAY_MS + 1
    pair.pay("young")
    refusal = pair.refusal(request_id)
    assert refusal.sqlstate == "55000"
    assert request_id in refusal.message
    assert refusal.detail is not None
    assert "The oldest result that is kept is of 2025-11-25T16:00:00.001Z" in refusal.detail
    assert pair.count() == [(2,), (2,)]
    assert contents(pair.paths[0]) == contents(pair.paths[1])
    pair.now_ms += 400 * DAY_MS
    later = pair.lead_on_the_follower(2)
    with pytest.raises(Exception, match="is older than the results that are kept"):
        later.stored_result(request_id)
    later.close()


def test_an_id_dated_ahead_of_the_log_is_kept_until_its_own_time_is_old(pair: TimedPair) -> None:
    ahead = f"{START_MS + 1_800_000}:x"
    first = pair.pay(ahead)[0].outcome
    pair.now_ms += DAY_MS + 1_000_000
    pair.pay()
    assert pair.pay(ahead)[0].outcome == first
    pair.now_ms += 1_000_000
    pair.pay()
    assert pair.refusal(ahead).sqlstate == "55000"
    assert pair.refusal(f"{pair.now_ms + 4_000_000}:x").sqlstate == "22023"


def test_a_clock_that_goes_back_does_not_take_the_logs_time_back(pair: TimedPair) -> None:
    pair.pay("a")
    pair.now_ms -= 5 * DAY_MS
    pair.pay("b")
    assert read_history(pair.follower).time_ms == START_MS
    assert pair.follower.execute("select time_ms from triplicate_requests").fetchall() == [(START_MS,), (START_MS,)]


def test_at_the_limit_new_requests_are_refused_and_none_younger_than_a_day_is_forgotten(tmp_path: Path) -> None:
    pair = TimedPair(tmp_path, RequestLimits(requests=3))
    pair.run("create table t(id integer primary key autoincrement, v)")
    for number in range(3):
        pair.pay(f"{START_MS}:{number}")
    refusal = pair.refusal(f"{START_MS}:3")
    assert refusal.sqlstate == "53400"
    assert refusal.detail is not None
    assert "The oldest result that is kept is of" in refusal.detail
    for number in range(3):
        assert pair.pay(f"{START_MS}:{number}")[0].error is None
    assert pair.count() == [(3,), (3,)]
    pair.now_ms += DAY_MS + 1
    pair.pay()
    assert pair.pay(f"{pair.now_ms}:4")[0].error is None
    pair.close()


def test_over_the_size_limit_a_request_is_kept_without_its_rows(tmp_path: Path) -> None:
    pair = TimedPair(tmp_path, RequestLimits(bytes=1))
    pair.run("create table t(id integer primary key autoincrement, v)")
    pair.pay("a")
    pair.pay("b")
    assert pair.pay("a")[0].error is None
    refusal = pair.refusal("b")
    assert (refusal.sqlstate, "too many to keep" in refusal.message) == ("55000", True)
    assert pair.count() == [(2,), (2,)]
    pair.close()


def test_ids_without_a_time_are_limited_for_good_and_dated_ones_are_not(tmp_path: Path) -> None:
    pair = TimedPair(tmp_path, RequestLimits(undated=2))
    pair.run("create table t(id integer primary key autoincrement, v)")
    pair.pay("a")
    pair.pay("b")
    pair.now_ms += 2 * DAY_MS
    pair.pay()
    refusal = pair.refusal("c")
    assert (refusal.sqlstate, "UUIDs of version 7" in (refusal.hint or "")) == ("53400", True)
    assert pair.pay(f"{pair.now_ms}:c")[0].error is None
    assert pair.refusal("a").sqlstate == "55000"
    assert contents(pair.paths[0]) == contents(pair.paths[1])
    pair.close()


def test_one_id_twice_in_a_batch_runs_once(pair: TimedPair) -> None:
    first, second = pair.pay(UNDATED, count=2)
    assert first.outcome is not None
    assert (second.outcome, second.error) == (None, None)
    assert pair.pay(UNDATED)[0].outcome == first.outcome
    assert pair.count() == [(1,), (1,)]


def test_the_view_shows_the_horizon_of_requests(pair: TimedPair) -> None:
    horizon = pair.gate.examine("select requests, undated, oldest_kept, refused_through, log_time from triplicate_request_horizon")
    pair.pay(UNDATED)
    pair.now_ms += 1000
    pair.pay(DATED)
    assert pair.reader.execute(horizon.sql).fetchall() == [
        (2, 1, "2025-11-24T16:00:00.000Z", None, "2025-11-24T16:00:01.000Z"),
    ]
    pair.now_ms += DAY_MS
    pair.pay()
    assert pair.follower.execute(horizon.sql).fetchall() == [
        (1, 1, "2025-11-24T16:00:01.000Z", "2025-11-24T16:00:00.000Z", "2025-11-25T16:00:01.000Z"),
    ]


def test_a_batch_forgets_a_bounded_number_and_a_large_one_twice_what_it_brings(pair: TimedPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_history, "DELETE_AT_ONCE", 3)
    for number in range(10):
        pair.pay(f"{START_MS}:{number}")
    pair.now_ms += DAY_MS + 1
    left = []
    for _ in range(4):
        pair.now_ms += 1000
        pair.pay()
        pair.pay()  # in the same second
        left.append(read_history(pair.follower).requests)
    assert left == [7, 4, 1, 0]
    assert contents(pair.paths[0]) == contents(pair.paths[1])


def test_ids_of_transactions_are_kept_for_a_day_in_runs(pair: TimedPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_history, "KEPT_POSITIONS", 10)
    for _ in range(3):
        pair.run("update t set v = v", count=1000)
        pair.pay()
    last = (1 << 40) + 2004
    assert pair.follower.execute("select count(*), max(last_id) from triplicate_transactions").fetchall() == [(1, last)]
    pair.now_ms += DAY_MS
    pair.pay()
    assert committed(pair.follower, last) is True
    pair.now_ms += 120_000
    pair.pay()
    assert committed(pair.follower, last) is None
    assert committed(pair.follower, last + 1) is True
    assert contents(pair.paths[0]) == contents(pair.paths[1])


def test_the_runs_of_transaction_ids_are_bounded(pair: TimedPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_history, "KEPT_RUNS", 5)
    for _ in range(20):
        pair.now_ms += 60_000
        pair.pay()
    assert read_history(pair.follower).runs == 5
    assert pair.follower.execute("select count(*) from triplicate_transactions").fetchall() == [(5,)]
    assert committed(pair.follower, (1 << 40) + 2) is None
    assert contents(pair.paths[0]) == contents(pair.paths[1])


@pytest.mark.parametrize("pruned", [False, True])
def test_a_copy_of_the_first_format_becomes_the_same_as_one_built_from_the_log(
    tmp_path: Path, pair: TimedPair, pruned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_history, "KEPT_POSITIONS", 1500 if pruned else 200_000)
    for number in range(8):
        pair.pay(f"old-{number}")
        pair.run("update t set v = v || 'x'", count=500)
    old = [without_time(batch) for batch in pair.batches]
    pair.batches.clear()
    pair.now_ms += 1000
    for number in range(3):
        pair.pay(f"new-{number}")
    pair.now_ms += DAY_MS + 1
    pair.pay(f"{pair.now_ms}:late")
    paths = [str(tmp_path / name) for name in ("upgraded.db", "replayed.db")]
    for path in paths:
        replay(path, old)
    before = contents(paths[1])
    to_format_1(paths[0])
    replay(paths[0], [])
    assert contents(paths[0]) == before
    for path in paths:
        replay(path, pair.batches)
    assert contents(paths[0]) == contents(paths[1])


def test_what_an_old_copy_kept_is_kept_for_a_day_after_time_begins(tmp_path: Path, pair: TimedPair) -> None:
    pair.pay(UNDATED)
    old = [without_time(batch) for batch in pair.batches]
    pair.batches.clear()
    path = str(tmp_path / "upgraded.db")
    replay(path, old)
    to_format_1(path)
    pair.now_ms += 30 * DAY_MS
    pair.pay()
    pair.now_ms += DAY_MS - 1
    pair.pay()
    replay(path, pair.batches)
    pair.follower.close(True)
    pair.paths[1] = path
    later = pair.lead_on_the_follower(2)
    stored = later.stored_result(UNDATED)
    assert stored is not None
    assert stored.results[0].rows == ((1,),)
    later.close()


@pytest.mark.parametrize("seed", range(3))
def test_the_short_way_of_most_batches_stores_what_the_long_one_does(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    copies = []
    for name in ("short", "long"):
        open_store(str(tmp_path / name), b"d" * 16)
        copies.append(open_writer(str(tmp_path / name)))
    time_ms = number = batch = end = 0
    for _ in range(150):
        if time_ms == 0:
            time_ms = chance.choice([0, 0, 0, START_MS])
        else:
            time_ms += chance.choice([0, 0, 0, 1, 200, 1000, 70_000, DAY_MS])
        number += chance.choice([0, 0, 0, 2])
        numbers = list(range(number + 1, number + 1 + chance.randrange(1, 4))) + [number + 9] * (chance.random() < 0.1)
        number, batch, start, end = numbers[-1], batch + 1, end, end + len(numbers)
        requests = [(chance.choice([UNDATED, DATED]) + str(batch), numbers[0], b"\0")] if chance.random() < 0.2 else []
        made = CommitRecord(1, batch, start, end, 1, numbers, requests, time_ms, max(0, time_ms - DAY_MS))
        record_batch(copies[0], made)
        with monkeypatch.context() as patched:
            patched.setattr(transaction_history, "_advance_time", lambda *_: False)
            record_batch(copies[1], made)
    tables = ("state", "transactions", "requests", "kept", "forgotten")
    found = [[copy.execute(f"select * from triplicate_{name}").fetchall() for name in tables] for copy in copies]
    assert found[0] == found[1]
    assert len(found[0][1]) > 1
    for copy in copies:
        copy.close(True)
