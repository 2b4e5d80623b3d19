"""Backups of a database: full ones while it is written, chains, and what happens to damaged ones."""

from __future__ import annotations

import asyncio
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.sql.backup.past_rig import STATEMENTS, Moment, command_on, content_of, ones, restored, writer_of, written
from tests.unit.sql.cluster import Cluster, play, run
from tests.unit.sql.snapshot_rig import door_of, snapshots_listed, truncate
from triplicate.errors import ArgumentError, BackupDamaged, NotKept
from triplicate.runtime import Host
from triplicate.sql import database_names
from triplicate.sql.backup.backup_files import Backup, open_backup, rebuild, verify
from triplicate.sql.backup.core.manifest import PartKind
from triplicate.sql.backup.core.target import AtPosition, AtTime, AtTransaction, Target

NAMES = ("full", "log")


async def chain(cluster: Cluster, folder: Path, cuts: tuple[int, ...] = (2, 5)) -> list[Moment]:
    """A full backup behind some transactions, and an increment behind each further cut and at the end."""
    database = await cluster.leader()
    _, _, source = await command_on(cluster)
    moments: list[Moment] = []
    for begin, end in zip((0, *cuts), (*cuts, len(STATEMENTS)), strict=True):
        moments += (await written(database, STATEMENTS[begin:end])).moments
        writer = writer_of(cluster, source)
        manifest = await (writer.increment(str(folder)) if begin else writer.full(str(folder)))
        assert manifest is not None
        assert manifest.end == database.position
    return moments


def at(host: Host, folder: Path, target: Target | None, path: Path) -> int:
    """Rebuild the database of a backup; its position."""
    path.unlink(missing_ok=True)
    return rebuild(host, open_backup(host, str(folder)), target, str(path)).position


def test_a_backup_made_while_the_database_is_written_holds_whole_transactions(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        session = await database.session()
        await run(session, "create table t(a int, b int)")
        writing = True

        async def write() -> int:
            count = 0
            while writing or count < 20:
                await run(session, "begin")
                await run(session, "insert into t values($1, 1)", (count,))
                await run(session, "insert into t values($1, 2)", (count,))
                await run(session, "commit")
                count += 1
            return count

        task = asyncio.create_task(write())
        _, _, source = await command_on(cluster)
        before = database.position
        manifest = await writer_of(cluster, source).full(str(tmp_path / "backup"))
        writing = False
        await task
        assert manifest.end >= before
        content = content_of(tmp_path / "backup" / manifest.full.file)["t"]
        assert content == [(number, half) for number in range(manifest.end - 1) for half in (1, 2)]
        await session.close()

    play(tmp_path / "nodes", scene)


def test_a_chain_leads_to_the_database_behind_each_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        folder, path = tmp_path / "backup", tmp_path / "rebuilt.db"
        moments = await chain(cluster, folder)
        client, _, source = await command_on(cluster)
        backup = open_backup(client.host, str(folder))
        verify(client.host, backup)
        kinds = [part.kind for part in backup.manifest.parts]
        assert kinds == [PartKind.FULL, PartKind.LOG, PartKind.LOG]
        for moment in moments[1:]:
            assert at(client.host, folder, AtPosition(moment.position), path) == moment.position
            assert content_of(path) == moment.content
        for moment in moments[2:]:
            assert at(client.host, folder, AtTransaction(moment.transaction_id), path) == moment.position
            assert content_of(path) == moment.content
        assert at(client.host, folder, None, path) == moments[-1].position
        made_ms = backup.manifest.parts[-1].made_ms
        assert at(client.host, folder, AtTime(made_ms), path) == moments[-1].position
        with pytest.raises(NotKept, match=r"does not reach time .*: it has what was committed before"):
            at(client.host, folder, AtTime(made_ms + 1), path)
        for target in (AtPosition(1), AtTime(1000), AtPosition(99), AtTransaction(moments[0].transaction_id)):
            with pytest.raises(NotKept, match=f"reaches from position {moments[1].position} .* to position {moments[-1].position}"):
                at(client.host, folder, target, path)
        assert not path.exists()
        assert await writer_of(cluster, source).increment(str(folder)) is None

    play(tmp_path / "nodes", scene)


def test_files_of_a_backup_are_for_their_owner_alone(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await chain(cluster, tmp_path / "backup")
        assert os.stat(tmp_path / "backup").st_mode & 0o777 == 0o700
        for path in (tmp_path / "backup").iterdir():
            assert path.stat().st_mode & 0o777 == 0o600, path

    play(tmp_path / "nodes", scene)


def test_a_backup_in_one_file_is_a_tar_archive_and_is_restored(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        history = await written(await cluster.leader())
        client, _, source = await command_on(cluster)
        path = tmp_path / "backup.tar"
        manifest = await writer_of(cluster, source).full(str(path))
        assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["backup.tar"]
        with tarfile.open(path) as archive:
            assert archive.getnames() == ["manifest.json", manifest.full.file]
        verify(client.host, open_backup(client.host, str(path)))
        at(client.host, path, None, tmp_path / "rebuilt.db")
        assert content_of(tmp_path / "rebuilt.db") == history.moments[-1].content
        with pytest.raises(ArgumentError, match="is one file"):
            await writer_of(cluster, source).increment(str(path))
        path.write_bytes(path.read_bytes()[:4096])
        with pytest.raises(BackupDamaged, match="cut off"):
            open_backup(client.host, str(path))

    play(tmp_path / "nodes", scene)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


@pytest.mark.parametrize("harm", [flip, cut, Path.unlink], ids=["flipped", "cut", "gone"])
def test_damage_to_any_part_is_found_before_anything_is_changed(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    async def scene(cluster: Cluster) -> None:
        folder = tmp_path / "backup"
        await chain(cluster, folder)
        client, _, _ = await command_on(cluster)
        kept = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert len(kept) == 4
        for name, content in kept.items():
            harm(folder / name)
            for check in (verified, rebuilt):
                with pytest.raises((BackupDamaged, ArgumentError), match=name.replace(".", r"\.")):
                    check(client.host, folder, tmp_path / "rebuilt.db")
            with pytest.raises((BackupDamaged, ArgumentError)):
                await restored(cluster, folder, AtPosition(2), ones("again"))
            (folder / name).write_bytes(content)
        assert await database_names(client) == ["db"]
        verified(client.host, folder, tmp_path / "rebuilt.db")

    def verified(host: Host, folder: Path, path: Path) -> None:
        verify(host, open_backup(host, str(folder)))

    def rebuilt(host: Host, folder: Path, path: Path) -> None:
        at(host, folder, None, path)

    play(tmp_path / "nodes", scene)


def test_a_full_backup_is_replaced_only_when_asked_and_a_foreign_folder_never(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        folder = tmp_path / "backup"
        await chain(cluster, folder)
        _, _, source = await command_on(cluster)
        writer = writer_of(cluster, source)
        with pytest.raises(ArgumentError, match="there is a backup at"):
            await writer.full(str(folder))
        manifest = await writer.full(str(folder), replace=True)
        assert sorted(path.name for path in folder.iterdir()) == sorted([manifest.full.file, "manifest.json"])
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "letter.txt").write_text("dear")
        with pytest.raises(ArgumentError, match=r"letter\.txt"):
            await writer.full(str(tmp_path / "other"), replace=True)

    play(tmp_path / "nodes", scene)


def test_an_increment_is_refused_behind_a_truncation_and_for_another_database(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        folder = tmp_path / "backup"
        database = await cluster.leader()
        moments = (await written(database, STATEMENTS[:2])).moments
        _, _, source = await command_on(cluster)
        await writer_of(cluster, source).full(str(folder))
        await written(database, STATEMENTS[2:])
        await (await door_of(cluster)).want(database.position)
        (snapshot,) = await snapshots_listed(cluster, 1)
        await truncate(cluster, snapshot.position)
        with pytest.raises(NotKept, match=f"ends at position {moments[-1].position}, and the log .* begins at {snapshot.position}"):
            await writer_of(cluster, source).increment(str(folder))
        await cluster.create("other")
        _, _, other = await command_on(cluster, "other")
        with pytest.raises(ArgumentError, match="is of another database"):
            await writer_of(cluster, other).increment(str(folder))

    play(tmp_path / "nodes", scene)


def test_a_backup_holds_no_more_than_its_manifest_and_parts(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        folder = tmp_path / "backup"
        await chain(cluster, folder)
        client, _, _ = await command_on(cluster)
        backup: Backup = open_backup(client.host, str(folder))
        assert sorted(path.name for path in folder.iterdir()) == sorted([*backup.parts, "manifest.json"])
        assert all(name.startswith(NAMES) for name in backup.parts)

    play(tmp_path / "nodes", scene)
