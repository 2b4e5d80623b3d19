"""Journal files and entry logs of another bookie, or under another's name: refused before anything is changed, deleted or believed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import JOURNAL, LEDGERS, add_all, contents
from tests.unit.bookie.rebuild_rig import rebuild
from triplicate.bookie.core.file_header import ENTRY_LOG_MAGIC, HEADER_BYTES, JOURNAL_MAGIC, FileIdentity, encode_file_header
from triplicate.errors import CorruptionError, WrongCluster
from triplicate.wire import Status

LOG = f"{LEDGERS}/0000000000000001.entries"
LATER_LOG = f"{LEDGERS}/0000000000000009.entries"
OLDER_JOURNAL = f"{JOURNAL}/0000000000000000.journal"


def put(rig: Rig, path: str, data: bytes) -> None:
    disk = rig.world.start_host("bookie-1").port.disk
    file = disk.open(path, create=True)
    file.pwrite([data], 0)
    file.sync()
    disk.sync_directory(path.rpartition("/")[0])


def log_of_another_bookie(rig: Rig) -> None:
    """Of the same cluster, and behind all logs that the index knows: there a crash leaves what counts for nothing and is deleted."""
    data = bytes(rig.disk.names.live[LOG].live.data)
    instance_id = rig.bookie.storage.stored.writer._identity.instance_id
    put(rig, LATER_LOG, encode_file_header(ENTRY_LOG_MAGIC, FileIdentity("bookie-2", instance_id, 9)) + data[HEADER_BYTES:])


def log_of_another_cluster(rig: Rig) -> None:
    put(rig, LATER_LOG, encode_file_header(ENTRY_LOG_MAGIC, FileIdentity("bookie-1", "another", 9)))


def log_under_another_name(rig: Rig) -> None:
    put(rig, LATER_LOG, bytes(rig.disk.names.live[LOG].live.data))


def old_journal_of_another_bookie(rig: Rig) -> None:
    """Before the mark, where files are no longer needed."""
    instance_id = rig.bookie.storage.stored.writer._identity.instance_id
    put(rig, OLDER_JOURNAL, encode_file_header(JOURNAL_MAGIC, FileIdentity("bookie-2", instance_id, 0)))


@pytest.mark.parametrize(
    ("put_in", "refused", "said"),
    [
        (
            log_of_another_bookie,
            WrongCluster,
            r"9\.entries: an entry log of bookie bookie-2 in cluster .*: move the file to the bookie that",
        ),
        (
            log_of_another_cluster,
            WrongCluster,
            r"9\.entries: an entry log of bookie bookie-1 in cluster another, not of bookie-1 in .*: move",
        ),
        (log_under_another_name, CorruptionError, r"9\.entries: the file says that it is number 1: it was renamed; give it its name back"),
        (old_journal_of_another_bookie, WrongCluster, r"0\.journal: a journal file of bookie bookie-2 in cluster .*: move the file to the"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_start_and_a_rebuild_refuse_it_and_leave_it_where_it_is(
    put_in: Callable[[Rig], None], refused: type[Exception], said: str
) -> None:
    async def body(rig: Rig) -> None:
        await add_all(await rig.connect(), 5, 0, 9)
        await rig.bookie.storage.flush()
        rig.node.crash(keep_unsynced=True)
        put_in(rig)
        before = contents(rig)
        with pytest.raises(refused, match=said):
            await rig.node.start()
        rig.node.crash(keep_unsynced=True)
        with pytest.raises(refused, match=said):
            await rebuild(rig)
        assert contents(rig) == before
        for path in (LATER_LOG, OLDER_JOURNAL):
            if path in rig.disk.names.live:
                rig.world.start_host("bookie-1").port.disk.delete(path)
        await rig.node.start()
        client = await rig.connect()
        assert [(await client.read(5, entry_id)).status for entry_id in range(10)] == [Status.OK] * 10

    run_rig(body, flush_interval_s=3600.0)


def test_a_journal_file_before_the_mark_may_have_its_next_number_and_its_old_name() -> None:
    """It was to be used again: its header is written before it is renamed, and a crash may take back the name that it had in between."""

    async def body(rig: Rig) -> None:
        await add_all(await rig.connect(), 5, 0, 9)
        await rig.bookie.storage.flush()
        rig.node.crash(keep_unsynced=True)
        identity = rig.bookie.storage.stored.writer._identity
        put(rig, OLDER_JOURNAL, encode_file_header(JOURNAL_MAGIC, FileIdentity(identity.bookie_id, identity.instance_id, 9)))
        await rig.node.start()
        client = await rig.connect()
        assert [(await client.read(5, entry_id)).status for entry_id in range(10)] == [Status.OK] * 10

    run_rig(body, flush_interval_s=3600.0)
