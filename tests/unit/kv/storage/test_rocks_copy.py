"""Data and position of a copy are of one moment, and damage is never taken for the end of the data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from triplicate.errors import ArgumentError, CorruptionError, Diverged
from triplicate.kv import ALL_KEYS, ChangeKind
from triplicate.kv.core.operations import NEVER
from triplicate.kv.core.store_records import Effect
from triplicate.kv.storage import rocks_copy
from triplicate.kv.storage.rocks_copy import AppliedBatch, OtherStore, RocksCopy

IDENTITY = b"i" * 16
FAR = 10**12


class Crash(Exception):
    """The process dies."""


class DyingDatabase:
    """A RocksDB whose process dies before one of its writes."""

    def __init__(self, database: Any, writes: int) -> None:
        self._database = database
        self._writes = writes

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._database, name)
        if name not in ("write", "put", "delete"):
            return found

        def write(*arguments: Any) -> Any:
            if self._writes == 0:
                raise Crash
            self._writes -= 1
            return found(*arguments)

        return write


def batches(number: int) -> list[AppliedBatch]:
    """An application that changes many keys, deadlines too."""
    effects = [Effect(ChangeKind.PUT, b"k%d" % key, b"%d" % number, FAR + number, FAR + number - 1 if number else 0) for key in range(5)]
    return [AppliedBatch(number + 1, effects)]


@pytest.mark.parametrize("writes", range(3))
def test_a_crash_at_any_write_leaves_data_and_position_of_one_moment(tmp_path: Path, writes: int) -> None:
    path = str(tmp_path / "s")
    copy = RocksCopy(path, IDENTITY)
    copy.write(batches(0), copy.state._replace(position=1, keys=5))
    database: Any = copy._database
    copy._database = DyingDatabase(database, writes)  # type: ignore[assignment]  # only the calls matter
    with suppress(Exception):  # The files show what the crash has left.
        copy.write(batches(1), copy.state._replace(position=2))
    database.close()
    again = RocksCopy(path, IDENTITY)
    for key in range(5):
        record = again.get(b"k%d" % key)
        assert record is not None
        position = again.state.position
        assert (record.version, record.value, record.deadline_ms - FAR) == (position, b"%d" % (position - 1), position - 1)
    assert [due.deadline_ms - FAR for due in again.due(2 * FAR, 100)] == [again.state.position - 1] * 5
    again.close()


def test_a_scan_over_damage_fails_instead_of_ending(tmp_path: Path) -> None:
    path = tmp_path / "s"
    copy = RocksCopy(str(path), IDENTITY)
    effects = [Effect(ChangeKind.PUT, b"k%04d" % key, b"%04d" % key * 30) for key in range(1000)]
    copy.write([AppliedBatch(1, effects)], copy.state._replace(position=1, keys=1000))
    copy.flush()
    copy.close()
    for file in path.glob("*.sst"):
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 0xFF
        file.write_bytes(content)
    damaged = RocksCopy(str(path), IDENTITY)
    with pytest.raises(CorruptionError):
        damaged.scan(ALL_KEYS, 10_000, 1 << 30, 0)
    with pytest.raises(CorruptionError):
        damaged.count(ALL_KEYS, 0)
    with pytest.raises(CorruptionError):
        list(damaged.moment().items)
    damaged.close()


@pytest.mark.parametrize(
    ("limit", "limit_bytes", "sizes"), [(1, 1 << 30, [0, 0, 1, 1]), (100, 1 << 30, [0, 0, 2]), (100, 1, [0] * 25 + [1, 1])]
)
def test_a_page_of_a_scan_passes_over_a_bounded_number_of_expired_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, limit_bytes: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(rocks_copy, "SKIPPED_KEYS", 10)
    copy = RocksCopy(str(tmp_path / "s"), IDENTITY)
    effects = [Effect(ChangeKind.PUT, b"k%02d" % key, b"v", 5) for key in range(25)]
    effects += [Effect(ChangeKind.PUT, b"live", b"v"), Effect(ChangeKind.PUT, b"live2", b"v")]
    copy.write([AppliedBatch(1, effects)], copy.state._replace(position=1, keys=27))
    found, keys = list[int](), list[bytes]()
    cursor: bytes | None = ALL_KEYS.start
    while cursor is not None:
        page = copy.scan(ALL_KEYS.from_cursor(cursor), limit, limit_bytes, 5)
        found.append(len(page.items))
        keys += [item.key for item in page.items]
        cursor = page.cursor
    assert found == sizes
    assert keys == [b"live", b"live2"]
    copy.close()


def test_a_change_of_the_deadline_of_a_missing_key_is_a_divergence(tmp_path: Path) -> None:
    copy = RocksCopy(str(tmp_path / "s"), IDENTITY)
    with pytest.raises(Diverged):
        copy.write([AppliedBatch(1, [Effect(ChangeKind.DEADLINE, b"k", None, 5, 0, existed=True)])], copy.state)
    copy.close()


def test_the_copy_of_another_store_is_not_opened(tmp_path: Path) -> None:
    RocksCopy(str(tmp_path / "s"), IDENTITY).close()
    with pytest.raises(OtherStore):
        RocksCopy(str(tmp_path / "s"), b"j" * 16)
    assert rocks_copy.RocksCopy(str(tmp_path / "s"), IDENTITY).state.position == 0


def test_many_values_that_are_large_together_are_refused_before_they_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = RocksCopy(str(tmp_path / "s"), IDENTITY)
    copy.write(batches(0), copy.state._replace(position=1, keys=5))
    keys = [b"k%d" % number for number in range(5)] * 10 + [b"absent"]
    few = [record for begin in range(0, len(keys), 10) for record in copy.get_many(keys[begin : begin + 10])]
    assert copy.get_many(keys) == few
    assert few[-1] is None
    monkeypatch.setattr(rocks_copy, "ANSWER_BYTES", 300)
    with pytest.raises(ArgumentError, match="read fewer keys at once"):
        copy.get_many(keys)
    copy.close()


class ChangedMeanwhile:
    """A RocksDB that changes right behind the beginning of a read."""

    def __init__(self, database: Any, meanwhile: Callable[[], None]) -> None:
        self._database = database
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def snapshot(self) -> Any:
        snapshot = self._database.snapshot()
        self._meanwhile()
        return snapshot

    def iter(self) -> Any:
        self._meanwhile()
        return self._database.iter()


def test_keys_that_expire_while_all_are_counted_do_not_count(tmp_path: Path) -> None:
    copy = RocksCopy(str(tmp_path / "s"), IDENTITY)
    keys = [b"k%d" % number for number in range(5)]
    puts = [Effect(ChangeKind.PUT, key, b"1", FAR) for key in keys]
    copy.write([AppliedBatch(1, [*puts, Effect(ChangeKind.PUT, b"stays", b"1")])], copy.state._replace(position=1, keys=6, time_ms=FAR - 1))
    assert copy.count_all() == 6
    copy.write((), copy.state._replace(time_ms=FAR))
    assert copy.count_all() == 1
    database = copy._database

    def expire() -> None:
        copy._database = database
        expiries = [Effect(ChangeKind.EXPIRE, key, None, NEVER, FAR, True) for key in keys]
        copy.write([AppliedBatch(2, expiries)], copy.state._replace(position=2, keys=1))

    copy._database = ChangedMeanwhile(database, expire)  # type: ignore[assignment]  # only the calls matter
    assert copy.count_all() == 1
    assert (copy.state.keys, copy.count_all()) == (1, 1)
    copy.close()


def test_the_state_and_the_keys_for_a_snapshot_are_of_one_moment(tmp_path: Path) -> None:
    copy = RocksCopy(str(tmp_path / "s"), IDENTITY)
    copy.write([AppliedBatch(1, [Effect(ChangeKind.PUT, b"a", b"1")])], copy.state._replace(position=1, keys=1))
    database = copy._database

    def change() -> None:
        copy._database = database
        copy.write([AppliedBatch(2, [Effect(ChangeKind.PUT, b"b", b"2")])], copy.state._replace(position=2, keys=2))

    copy._database = ChangedMeanwhile(database, change)  # type: ignore[assignment]  # only the calls matter
    moment = copy.moment()
    assert (moment.state.position, [item.key for item in moment.items]) in ((1, [b"a"]), (2, [b"a", b"b"]))
    copy.close()
