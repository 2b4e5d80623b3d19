"""The index: what it keeps over crashes, and that damage shows."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tests.unit.bookie.index_rig import CACHE, PATH, Machine, run_of
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.storage.index import Index, delete_index
from triplicate.bookie.storage.index_vfs import COMMITS_SUFFIX
from triplicate.errors import CorruptionError


def test_rows_survive_a_crash_after_add_returned() -> None:
    for seed in range(8):
        machine = Machine(seed)
        index = Index(machine.disk, PATH, CACHE)
        index.add(1, [(1, LedgerData(5, b"k" * 20, True))], [(1, run_of(5, 0, 9)), (1, run_of(5, 10, 19, offset=9000))], [(1, 10_000)])
        machine.crash()
        again = Index(machine.disk, PATH, CACHE)
        assert again.ledger(5) == (LedgerData(5, b"k" * 20, True), 19)
        assert again.fact("flush") == 1
        assert again.log_sizes() == {1: 10_000}
        assert [run.first for _, run in again.runs_holding(5, 12)] == [10]
        again.close()


def test_an_interrupted_commit_leaves_the_rows_of_before() -> None:
    for seed in range(8):
        machine = Machine(seed)
        index = Index(machine.disk, PATH, CACHE)
        index.add(1, [], [(1, run_of(5, 0, 9))], [])
        before = machine.world.disk("node").syncs

        def die(kind: str, path: str) -> None:
            if kind == "sync":
                raise OSError(5, "pulled")

        machine.world.disk("node").before_operation = die
        with pytest.raises(OSError, match="pulled"):
            index.add(2, [], [(1, run_of(5, 10, 19, 2, 9000))], [])
        machine.crash()
        assert machine.world.disk("node").syncs == before
        again = Index(machine.disk, PATH, CACHE)
        assert again.fact("flush") in (1, 2)  # A write that was not synced may survive; half of it may not.
        assert len(again.runs_of(5)) == again.fact("flush")
        again.close()


def test_overlapping_runs_come_newest_first() -> None:
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    index.add(1, [], [(1, run_of(5, 0, 99)), (1, run_of(6, 0, 99, offset=8000))], [])
    index.add(2, [], [(2, run_of(5, 50, 60, 2))], [])
    assert [(log, run.flush_number) for log, run in index.runs_holding(5, 55)] == [(2, 2), (1, 1)]
    assert [log for log, _ in index.runs_holding(5, 61)] == [1]
    assert index.runs_holding(5, 100) == []
    index.close()


def test_an_older_state_does_not_replace_a_newer_one() -> None:
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    index.add(7, [(2, LedgerData(5, b"k", True))], [], [])
    index.add(3, [(1, LedgerData(5, b"k", False))], [], [])
    found = index.ledger(5)
    assert found is not None
    assert found[0].fenced
    index.close()


def test_deleted_ledgers_are_gone() -> None:
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    index.add(1, [(1, LedgerData(ledger, b"k")) for ledger in range(3)], [(1, run_of(ledger, 0, 5)) for ledger in range(3)], [(1, 99)])
    index.delete_ledgers([1])
    assert index.ledger(1) is None
    assert index.runs_of(1) == []
    assert index.ledger_ids() == [0, 2]
    assert [index.lives_in(log) for log in (1, 2)] == [(True, True), (False, False)]
    assert [state.ledger_id for _, state in index.states_in(1)] == [0, 2]
    index.close()


def filled(machine: Machine) -> dict[str, Any]:
    index = Index(machine.disk, PATH, CACHE)
    # Enough commits that some pages have moved into the database file and some have not.
    for flush in range(1, 40):
        index.add(
            flush, [(1, LedgerData(ledger, b"k" * 20)) for ledger in range(400)], [(1, run_of(1, flush * 10, flush * 10 + 9, flush))], []
        )
    answers = {"ledgers": index.ledger_ids(), "runs": index.runs_of(1), "flush": index.fact("flush")}
    index.close()
    assert machine.size(PATH) > 0
    assert machine.size(PATH + COMMITS_SUFFIX) > 0
    return answers


def test_flipped_bytes_are_noticed_or_do_not_matter() -> None:
    machine = Machine()
    answers = filled(machine)
    noticed = 0
    files = {path: machine.read(path) for path in (PATH, PATH + COMMITS_SUFFIX)}
    for path in files:
        size = len(files[path])
        for offset in range(7, size, size // 60):
            for each, data in files.items():
                # Opening it moves pages from one to the other.
                machine.write(each, data)
            machine.flip(path, offset)
            try:
                index = Index(machine.disk, PATH, CACHE)
                try:
                    flush = index.fact("flush")
                    found = {"ledgers": index.ledger_ids(), "runs": index.runs_of(1), "flush": flush}
                    # A damaged commit takes itself and what follows away, which the journal's mark then shows.
                    assert found == answers or (flush or 0) < answers["flush"]
                    noticed += found != answers
                finally:
                    index.close()
            except CorruptionError:
                noticed += 1
    assert noticed > 20


def test_a_file_that_is_no_index_is_named_and_can_be_replaced() -> None:
    machine = Machine()
    file = machine.disk.open(PATH, create=True)
    file.pwrite([b"not a database" * 1000], 0)
    file.close()
    with pytest.raises(CorruptionError, match=PATH):
        Index(machine.disk, PATH, CACHE)
    delete_index(machine.disk, PATH)
    Index(machine.disk, PATH, CACHE).close()


def test_what_is_committed_after_a_new_file_of_commits_whose_name_found_no_space_is_read_again() -> None:
    """The file was renamed, the sync of its name refused: it is empty, and what is written goes to its beginning."""
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    index.add(1, [(1, LedgerData(5, b"k"))], [(1, run_of(5, 0, 9))], [(1, 5000)])
    index.close()
    refused: list[str] = []

    def refuse(kind: str, path: str) -> None:
        if kind == "sync_directory" and not refused:
            refused.append(path)
            raise OSError(errno.ENOSPC, "No space left on device", path)

    machine.world.disk("node").before_operation = refuse
    index = Index(machine.disk, PATH, CACHE)
    assert refused
    for flush in range(2, 5):
        index.add(flush, [], [(1, run_of(5, flush * 10, flush * 10 + 9, flush))], [(1, 5000 + flush)])
    machine.crash()
    again = Index(machine.disk, PATH, CACHE)
    assert again.fact("flush") == 4
    assert len(again.runs_of(5)) == 4
    again.close()


def test_an_index_can_be_read_while_its_commits_find_no_space() -> None:
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    index.add(1, [(1, LedgerData(5, b"k" * 20))], [(1, run_of(5, 0, 9))], [(1, 10_000)])
    full = True

    def refuse(kind: str, path: str) -> None:
        if full and kind == "write":
            raise OSError(errno.ENOSPC, "No space left on device", path)

    machine.world.disk("node").before_operation = refuse
    rows = [(2, run_of(5, number * 10, number * 10 + 9, 2, 4096 + number)) for number in range(1, 200)]
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            index.add(2, [(2, LedgerData(6, b"k" * 20))], rows, [(2, 9000)])
        assert index.log_sizes() == {1: 10_000}
        assert index.runs_of(5) == [(1, run_of(5, 0, 9))]
        assert index.ledger(6) is None
    full = False
    index.add(2, [(2, LedgerData(6, b"k" * 20))], rows, [(2, 9000)])
    machine.crash()
    again = Index(machine.disk, PATH, CACHE)
    assert again.log_sizes() == {1: 10_000, 2: 9000}
    assert len(again.runs_of(5)) == 200
    assert again.ledger(6) is not None


def test_a_commit_that_found_no_space_is_not_found_whole_after_a_crash() -> None:
    for seed in range(2):
        machine = Machine(seed)
        index = Index(machine.disk, PATH, CACHE)
        index.add(1, [(1, LedgerData(5, b"k" * 20))], [(1, run_of(5, 0, 9))], [(1, 10_000)])
        fails = [1]

        def refuse(kind: str, path: str, fails: list[int] = fails) -> None:
            if kind == "sync" and fails[0]:
                fails[0] -= 1
                raise OSError(errno.ENOSPC, "No space left on device", path)

        machine.world.disk("node").before_operation = refuse
        with pytest.raises(OSError, match="No space"):
            index.add(2, [(2, LedgerData(6, b"k" * 20))], [], [(2, 9000)])
        # The process is killed; what it wrote is in the system's memory.
        machine.host.crash(keep_unsynced=True)
        machine.host = machine.world.start_host("node")
        again = Index(machine.disk, PATH, CACHE)
        assert again.log_sizes() == {1: 10_000}
        assert again.ledger(6) is None
        again.close()
