"""Writing backups: full ones, and the records of the log behind them.

Files are written under another name, synced and renamed. A folder becomes a backup, or a longer one, when its manifest is renamed.
"""

from __future__ import annotations

import hashlib
import json
import os.path
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, closing
from typing import NamedTuple

from triplicate.errors import ArgumentError, NotKept
from triplicate.log import KeySource, Logs
from triplicate.runtime import Host, Worker, fault_point, shielded
from triplicate.sql.backup.backup_files import (
    ARCHIVE_SUFFIX,
    READ_BYTES,
    SEALED_NAME,
    Backup,
    digest_of_file,
    encrypt_file,
    is_archive,
    manifest_path,
    open_backup,
)
from triplicate.sql.backup.core import manifest as manifests
from triplicate.sql.backup.core import tar_format
from triplicate.sql.backup.core.manifest import Manifest, Part, PartKind, digest_text, encode_manifest
from triplicate.sql.backup.core.part_cipher import SALT_SIZE, BackupKey, PartEncryptor, sealed
from triplicate.sql.backup.core.record_file import START, BatchFrame, encode_frame
from triplicate.sql.backup.past_copy import DatabaseLog, PastCopies
from triplicate.sql.backup.work_file import WorkFileState
from triplicate.sql.core.records import decode_header
from triplicate.sql.storage.sqlite_copy import check_room, delete_file, on_disk

MAKING = ".making"
"""Suffix of what is being written."""
ENCRYPTED = ".encrypted"
"""Suffix of encrypted parts."""
_PARTS = ("full-", "log-")


class _LogEnd(NamedTuple):
    """The state of the log behind the last batch of a part."""

    epoch: int
    time_ms: int
    schema: str


class BackupWriter:
    """Makes backups of one database."""

    def __init__(self, host: Host, logs: Logs, source: DatabaseLog) -> None:
        self._host = host
        self._logs = logs
        self._source = source
        self._past = PastCopies(host, logs, source)

    @fault_point("sql.backup")
    async def full(self, path: str, *, replace: bool = False, key: BackupKey | None = None, work_folder: str | None = None) -> Manifest:
        """Make a backup with everything acknowledged so far, while the database is read and written.

        Args:
            path: a folder, which is made, or a file ``*.tar``. replace: replace the backup that is there, once the new one is complete.
            key: encrypt its files. work_folder: for the copy in clear on the way, which is not made beside an encrypted backup.

        Raises:
            ArgumentError: there is a backup already, or another file; or a key, and no work folder. EnvironmentFault: the disk fails or has
            no room.
            Also the errors of `PastCopies.make`.
        """
        if key is None:
            work_folder = None  # The copy is the part itself.
        elif work_folder is None:
            raise ArgumentError("an encrypted backup needs a work folder for the copy in clear on the way")
        worker = self._host.new_worker(f"sql-{self._source.name}-backup")
        try:
            await on_disk(worker, _check_free, self._host, path, replace)
            made_ms = self._now_ms()
            work = path + MAKING + ".sqlite" if is_archive(path) else os.path.join(path, "full" + MAKING)
            clear = work if work_folder is None else os.path.join(work_folder, "full" + MAKING)
            try:
                state = await self._past.make(None, clear)
                manifest = await self._manifest(worker, clear, work, state, key, made_ms)
                finish = _write_archive if is_archive(path) else _write_folder
                await on_disk(worker, finish, self._host, path, work, manifest)
            finally:
                for file in dict.fromkeys((clear, work)):
                    await shielded(on_disk(worker, delete_file, self._host, file))
        finally:
            await shielded(worker.close())
        return manifest

    def _now_ms(self) -> int:
        """Taken before the end of the log is asked for: the backup has everything acknowledged before."""
        return self._host.clock.wall_us() // 1000

    async def _manifest(self, worker: Worker, clear: str, work: str, state: WorkFileState, key: BackupKey | None, made_ms: int) -> Manifest:
        """The manifest of a full backup whose part is at `work`, where it is written from `clear` if there is a key."""
        source, head = self._source, await self._logs.head(self._source.log)
        identity, sealed_text = source.identity.hex(), ""
        name = f"full-{state.position}-{made_ms}.sqlite" + (ENCRYPTED if key is not None else "")
        if key is not None:
            await on_disk(worker, encrypt_file, self._host, clear, work, PartEncryptor(key, self._salt(), identity, name))
            sealed_text = sealed(key, self._salt(), identity, SEALED_NAME, json.dumps(source.administrator).encode()).hex()
        digest, size_bytes = await on_disk(worker, digest_of_file, self._host, work)
        part = Part(name, PartKind.FULL, size_bytes, digest, 0, state.position, state.epoch, state.time_ms, made_ms)
        return Manifest(
            source.name,
            identity,
            source.log,
            head.log_id,
            source.lease_ms,
            state.schema,
            (part,),
            source.administrator,
            bool(head.key_id),
            "" if key is None else key.key_id,
            sealed_text,
        )

    def _salt(self) -> bytes:
        return self._host.entropy.secret(SALT_SIZE)

    @fault_point("sql.backup_increment")
    async def increment(self, path: str, keys: KeySource | None = None) -> Manifest | None:
        """Add the log's records since its end to a backup in a folder, encrypted under its key if it has one.

        Returns:
            The longer manifest; None if there is nothing to add.

        Raises:
            ArgumentError: there is no backup in a folder, or one of another database. NotKept: the log has been truncated since.
            BackupDamaged: the backup's chain is broken. EnvironmentFault: the disk fails or has no room.
        """
        if is_archive(path):
            raise ArgumentError(f"{path} is one file, to which nothing can be added: make a backup in a folder, without {ARCHIVE_SUFFIX}")
        worker = self._host.new_worker(f"sql-{self._source.name}-backup")
        try:
            backup: Backup = await on_disk(worker, open_backup, self._host, path, keys)
            if keys is not None and backup.key is None:
                raise ArgumentError(f"the backup at {path} is not encrypted: make a full one with --key-file and --replace")
            await self._check_same(backup.manifest, path)
            made_ms = self._now_ms()
            first, end = backup.manifest.end, await self._past.resolve(None)
            if end <= first:
                return None
            work = os.path.join(path, "log" + MAKING)
            name, encryptor = f"log-{first}-{end}.records", None
            if backup.key is not None:
                name += ENCRYPTED
                encryptor = PartEncryptor(backup.key, self._salt(), backup.manifest.identity, name)
            last = await self._write_records(worker, work, first, end, encryptor)
            digest, size_bytes = await on_disk(worker, digest_of_file, self._host, work)
            part = Part(name, PartKind.LOG, size_bytes, digest, first, end, last.epoch, last.time_ms, made_ms)
            longer = backup.manifest.followed_by(part, last.schema)
            await on_disk(worker, _write_folder, self._host, path, work, longer)
            return longer
        finally:
            await shielded(worker.close())

    async def _check_same(self, manifest: Manifest, path: str) -> None:
        source, head = self._source, await self._logs.head(self._source.log)
        if (manifest.identity, manifest.log_id) != (source.identity.hex(), head.log_id):
            raise ArgumentError(
                f"the backup at {path} is of another database, {manifest.database!r} with log {manifest.log}; database {source.name!r} has "
                f"log {source.log}: make a full backup of it elsewhere"
            )
        if head.first_offset > manifest.end:
            raise NotKept(
                f"the backup at {path} ends at position {manifest.end}, and the log of database {source.name!r} begins at "
                f"{head.first_offset} by now: make a full backup, and add to it more often, or raise node.snapshot_keep_log_s"
            )

    async def _write_records(self, worker: Worker, path: str, first: int, end: int, encryptor: PartEncryptor | None) -> _LogEnd:
        file = await on_disk(worker, lambda: self._host.disk.open(path, create=True))
        last: BatchFrame | None = None
        try:
            await on_disk(worker, file.truncate, 0)
            begin = START if encryptor is None else encryptor.start + encryptor.feed(START)
            offset = await on_disk(worker, file.pwrite, [begin], 0)
            async with aclosing(_gathered(self._past.frames(first, end))) as groups:
                async for group in groups:
                    buffers = [encode_frame(frame) for frame in group]
                    if encryptor is not None:
                        buffers = [await on_disk(worker, encryptor.feed, b"".join(buffers))]
                    await on_disk(worker, check_room, self._host, path, sum(map(len, buffers)), "the backup")
                    offset += await on_disk(worker, file.pwrite, buffers, offset)
                    last = group[-1]
            if encryptor is not None:
                await on_disk(worker, file.pwrite, [encryptor.finish()], offset)
            await on_disk(worker, file.sync)
        finally:
            await shielded(on_disk(worker, file.close))
        assert last is not None, "there are records between the two positions"
        header = decode_header(last.preamble)
        return _LogEnd(header.epoch, header.time_ms, header.digest_after.hex())


async def _gathered(frames: AsyncGenerator[BatchFrame, None]) -> AsyncGenerator[Sequence[BatchFrame], None]:
    """Batches in groups of about `READ_BYTES`."""
    held: list[BatchFrame] = []
    size = 0
    async with aclosing(frames):
        async for frame in frames:
            held.append(frame)
            size += sum(map(len, frame.records))
            if size >= READ_BYTES:
                yield held
                held, size = [], 0
    if held:
        yield held


def _check_free(host: Host, path: str, replace: bool) -> None:
    """Check that a full backup may be written to a path, and make the folder. Raises ArgumentError."""
    disk = host.disk
    if is_archive(path):
        if disk.exists(path) and not replace:
            raise ArgumentError(f"{path} is there already: give another name, or --replace")
        return
    if disk.exists(manifest_path(path)):
        if not replace:
            raise ArgumentError(f"there is a backup at {path} already: give --incremental to add to it, --replace, or another name")
    elif disk.exists(path):
        foreign = [name for name in disk.names(path) if not (name.startswith(_PARTS) or MAKING in name)]
        if foreign:
            raise ArgumentError(f"{path} holds no backup, but {foreign[0]!r}: give the name of a new or an empty folder")
    disk.mkdir(path)


def _write_folder(host: Host, folder: str, work: str, manifest: Manifest) -> None:
    """Rename the last part into place, and then the manifest. Parts that are not listed any more are deleted."""
    disk = host.disk
    with closing(disk.open(work)) as file:
        file.sync()
    disk.rename(work, os.path.join(folder, manifest.parts[-1].file))
    disk.sync_directory(folder)
    path = manifest_path(folder)
    with closing(disk.open(path + MAKING, create=True)) as file:
        file.truncate(0)
        file.pwrite([encode_manifest(manifest)], 0)
        file.sync()
    disk.rename(path + MAKING, path)
    disk.sync_directory(folder)
    listed = {part.file for part in manifest.parts}
    for name in disk.names(folder):
        if name.startswith(_PARTS) and name not in listed:
            disk.delete(os.path.join(folder, name))


def _write_archive(host: Host, path: str, work: str, manifest: Manifest) -> None:
    """Write the manifest and the full part as one file, and rename it into place."""
    disk, part, content = host.disk, manifest.full, encode_manifest(manifest)
    check_room(host, path, part.size_bytes, "the backup")
    digest = hashlib.sha256()
    with closing(disk.open(path + MAKING, create=True)) as file, closing(disk.open(work, readonly=True)) as source:
        file.truncate(0)
        header = tar_format.encode_header(tar_format.ArchiveMember(manifests.FILE_NAME, len(content)), part.made_ms)
        end = file.pwrite([header, content, bytes(tar_format.padding(len(content)))], 0)
        end += file.pwrite([tar_format.encode_header(tar_format.ArchiveMember(part.file, part.size_bytes), part.made_ms)], end)
        done = 0
        while chunk := source.pread(READ_BYTES, done):
            digest.update(chunk)
            done += len(chunk)
            end += file.pwrite([chunk], end)
            host.step_aside()
        assert digest_text(digest) == part.digest, "nobody else has the file"
        file.pwrite([bytes(tar_format.padding(done)), tar_format.END], end)
        file.sync()
    disk.rename(path + MAKING, path)
    disk.sync_directory(os.path.dirname(path))
