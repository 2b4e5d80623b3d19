"""The play of ledgers, with faults forced upon it: losses of power around a force, and stretches of entries that rot."""

from __future__ import annotations

import random
from unittest.mock import Mock

import pytest

from triplicate.bookie.core.entry_log_format import EntryLogScanner, encode_run
from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.sim.disk import SimulatedDisk
from triplicate.sim.disk_image import Inode
from triplicate.sim.recorder import Recorder
from triplicate.sim.virtual_loop import Life, VirtualLoop
from triplicate_simulator import WORKLOADS, Fault, Plan, Result, run_seed
from triplicate_simulator.checkers.history import History
from triplicate_simulator.checkers.ledger_promises import Undeleted
from triplicate_simulator.cluster.plan import Value
from triplicate_simulator.faults.disk_faults import STRETCH_BYTES, STRETCH_STEP_BYTES, rot_entries, rot_stretch
from triplicate_simulator.workloads.ledger.ledger_model import LedgerModel

DEFERRED = WORKLOADS["ledgers"].load_type(writers=("plain", "deferred"), pause_mean_s=0.2, zombie_share=0.0)


def disk_with(files: dict[str, bytes]) -> SimulatedDisk:
    loop = VirtualLoop()
    disk = SimulatedDisk("node", random.Random(1), Recorder(loop.time))
    disk.make_directory("/data/ledgers")
    port = disk.port(Life("node"), loop)
    for path, content in files.items():
        file = port.open(path, create=True)
        file.pwrite([content], 0)
        file.sync()
    return disk


def play(*strikes: Fault, seed: int = 1, load: object = DEFERRED, duration_s: float = 8.0) -> Result:
    result = run_seed(seed, Plan("ledgers", load, strikes, duration_s))
    assert result.ok, str(result)
    return result


@pytest.mark.parametrize("point", ["play.accepted", "play.forced"])
@pytest.mark.parametrize("later_s", [0.0, 0.01])
def test_the_power_goes_for_all_bookies_where_a_writer_has_heard_of_what_it_deferred(point: str, later_s: float) -> None:
    result = play(Fault("ambush", 0.5, lasts_s=0.05, options={"point": point, "later_s": later_s, "silent": False}))
    assert result.struck == {"ambush": 1}
    assert [fact.kind for fact in result.facts].count("host.crash") == 5
    assert result.counts["forced"] > 0


def test_the_bookie_that_was_ahead_comes_back_after_the_others() -> None:
    options: dict[str, Value] = {"point": "play.forced", "ahead": "bookie-2", "late_s": 3.0}
    result = play(Fault("ambush", 0.5, lasts_s=0.05, options=options))
    starts = {fact.node: fact.time_s for fact in result.facts if fact.kind == "host.start" and fact.node.startswith("bookie-")}
    # Its time is reckoned from when all the others are ready.
    assert starts.pop("bookie-2") >= max(starts.values()) + 3.0


def test_where_no_writer_defers_nobody_comes_into_the_ambush() -> None:
    load = WORKLOADS["ledgers"].load_type(writers=("plain",))
    result = play(Fault("ambush", 0.5, lasts_s=0.05, options={"point": "play.forced"}), load=load)
    assert result.struck == {}


def test_writers_with_ids_of_their_own_force_what_was_just_accepted() -> None:
    load = WORKLOADS["ledgers"].load_type(writers=("plain", "adv deferred"), pause_mean_s=0.2, zombie_share=0.0)
    assert play(Fault("ambush", 0.5, lasts_s=0.05, options={"point": "play.forced"}), load=load).struck == {"ambush": 1}


def test_damaged_copies_are_asked_for_in_batches_at_the_end() -> None:
    load = WORKLOADS["ledgers"].load_type(writers=("plain", "plain"), delete_share=0.0)
    rot = [Fault("bit_rot", 4.0, "bookie-1", options={"place": "entries"})]
    result = play(*rot, load=load)
    assert result.struck == {"bit_rot": 1}
    assert result.counts["read_damaged"] > 0
    mismatches = [fact for fact in result.facts if fact.kind == "client.digest_mismatch" and fact.node == "final"]
    assert mismatches


def test_a_rotten_stretch_has_a_bit_in_each_step_of_an_entry_log() -> None:
    disk = disk_with({"/data/ledgers/0000000000000001.entries": bytes(2 * STRETCH_BYTES), "/data/ledgers/index": bytes(STRETCH_BYTES)})
    path, first = rot_stretch(disk, random.Random(1)) or ("", -1)
    assert path.endswith(".entries")
    log = disk.names.live[path]
    assert isinstance(log, Inode)
    struck = [offset for offset, byte in enumerate(log.durable.data) if byte]
    assert struck == list(range(first, first + STRETCH_BYTES, STRETCH_STEP_BYTES))


def test_a_stretch_that_a_write_is_about_to_put_right_does_not_rot() -> None:
    path = "/data/ledgers/0000000000000001.entries"
    disk = disk_with({path: bytes(STRETCH_BYTES)})
    disk.port(Life("node", 2), VirtualLoop()).open(path).pwrite([bytes(STRETCH_BYTES)], 0)
    assert rot_stretch(disk, random.Random(1)) is None


def test_where_there_is_no_entry_log_no_stretch_rots() -> None:
    assert rot_stretch(disk_with({"/data/ledgers/index": bytes(STRETCH_BYTES)}), random.Random(1)) is None


def test_rotten_entries_leave_the_blocks_of_their_log_whole() -> None:
    path, ids = "/data/ledgers/0000000000000001.entries", range(100)
    head, body, _ = encode_run(1, 7, ids, [bytes(50)] * len(ids), HEADER_BYTES)
    whole = bytes(HEADER_BYTES) + head + b"".join(body)
    disk = disk_with({path: whole, "/data/ledgers/index": bytes(1000)})
    found = rot_entries(disk, random.Random(1))
    log = disk.names.live[path]
    assert isinstance(log, Inode)
    data = bytes(log.durable.data)
    struck = [spot for spot, byte in enumerate(data) if byte != whole[spot]]
    assert found == (path, struck[0])
    assert len(ids) / 2 < len(struck) < len(ids)
    scanner = EntryLogScanner(lambda size, offset: data[offset : offset + size], len(data), path)
    ((run, _),) = scanner.scan()
    table = scanner.run_table(run)
    entries = [data[run.body_offset + offset :][4 : 4 + size] for offset, size in map(table.extent, ids)]
    assert sum(entry != bytes(50) for entry in entries) == len(struck)


def test_where_no_entry_is_stored_none_rots() -> None:
    assert rot_entries(disk_with({"/data/ledgers/0000000000000001.entries": bytes(HEADER_BYTES)}), random.Random(1)) is None


def test_a_return_in_time_does_not_bring_back_what_a_late_one_lost() -> None:
    """A ledger deleted twice: the first return came too late, the bookies had dropped its entries (seed 80120)."""
    now_s = [0.0]
    history = History()
    context = Mock(history=history, plan=Mock(faults=(), storage=Mock(trash_period_s=100.0)), time=lambda: now_s[0])
    model = LedgerModel(context, DEFERRED)
    model.ledgers.append(Mock(ledger_id=32, undelete_requested=True))
    for gone_for_s in (200.0, 1.0):
        model.deleted_s[32] = now_s[0]
        now_s[0] += gone_for_s
        model._note_undelete(32)
    assert [event.in_time for event in history.of(Undeleted)] == [False, False]
