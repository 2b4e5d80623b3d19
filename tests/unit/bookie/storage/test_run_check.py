"""The check of runs: unreadable sectors, portions, and copies of which newer ones exist."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from triplicate.bookie.core.entry_log_format import BlockInfo, encode_run
from triplicate.bookie.storage.run_check import RunCheck
from triplicate.ledger import DigestType, DigestVerifier, EntryCodec
from triplicate.runtime import Disk

LEDGER = 9
LOG = 4


@dataclass
class UnreadableFile:
    """Bytes of which a range cannot be read."""

    data: bytes
    bad: range
    path: str = "/log"
    closed: bool = False

    def pread(self, size: int, offset: int) -> bytes:
        if offset < self.bad.stop and self.bad.start < offset + size:
            raise OSError(errno.EIO, "unreadable sector")
        return self.data[offset : offset + size]

    def size(self) -> int:
        return len(self.data)

    def close(self) -> None:
        self.closed = True


class OneFile:
    """A disk with one file."""

    def __init__(self, file: UnreadableFile) -> None:
        self.file = file

    def open(self, path: str, *, readonly: bool) -> UnreadableFile:
        return self.file


def run_of(count: int, size: int = 100) -> tuple[bytes, BlockInfo]:
    codec = EntryCodec(LEDGER, DigestType.CRC32C, b"")
    entries = [codec.encode(entry_id, entry_id - 1, 0, b"x" * size) for entry_id in range(count)]
    head, body, info = encode_run(1, LEDGER, range(count), entries, 0)
    return head + b"".join(bytes(part) for part in body), info


def check_of(
    data: bytes, run: BlockInfo, *, bad: range = range(0), counts: Callable[[int, BlockInfo], bool] = lambda entry_id, run: True
) -> tuple[RunCheck, UnreadableFile]:
    file = UnreadableFile(data, bad)
    is_right = DigestVerifier(DigestType.CRC32C, b"").is_right
    return RunCheck(cast("Disk", OneFile(file)), file.path, LOG, [run], is_right, counts, lambda: None), file


def damaged(check: RunCheck, size_bytes: int = 1 << 20) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while not check.done:
        found += [(each.first, each.last) for each in check.portion(size_bytes).damage]
    check.close()
    return found


def test_an_unreadable_sector_concerns_the_entries_that_it_touches() -> None:
    data, run = run_of(50)
    stride = run.body_bytes // 50
    sector = range(run.body_offset + 10 * stride + 5, run.body_offset + 12 * stride + 5)
    check, file = check_of(data, run, bad=sector)
    assert [entry_id for first, last in damaged(check) for entry_id in range(first, last + 1)] == [10, 11, 12]
    assert file.closed


def test_an_unreadable_table_concerns_the_whole_run() -> None:
    data, run = run_of(50)
    check, _ = check_of(data, run, bad=range(run.table_offset, run.table_offset + 1))
    assert damaged(check) == [(0, 49)]


def test_a_log_that_is_missing_or_too_short_is_damage() -> None:
    data, run = run_of(50)
    check, _ = check_of(data[:-1], run)
    assert damaged(check) == [(0, 49)]
    without_file = RunCheck(cast("Disk", None), None, LOG, [run], None, lambda entry_id, run: True, lambda: None)
    assert damaged(without_file) == [(0, 49)]


def test_a_run_is_read_in_portions() -> None:
    data, run = run_of(1000)
    check, _ = check_of(data, run)
    portions = []
    while not check.done:
        portions.append(check.portion(4096))
    assert sum(portion.entries for portion in portions) == 1000
    assert sum(portion.size_bytes for portion in portions) == run.end - run.offset
    # The first one reads the table as well, which is not divided.
    assert max(portion.size_bytes for portion in portions[1:]) <= 4096 + 200
    assert not any(portion.damage for portion in portions)


def test_damage_of_copies_that_do_not_count_is_passed_over() -> None:
    data, run = run_of(50)
    broken = bytearray(data)
    for entry_id in range(20, 24):
        broken[run.body_offset + entry_id * (run.body_bytes // 50) + 60] ^= 1
    check, _ = check_of(bytes(broken), run, counts=lambda entry_id, run: entry_id != 21)
    assert [entry_id for first, last in damaged(check) for entry_id in range(first, last + 1)] == [20, 22, 23]
