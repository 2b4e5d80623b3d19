"""A backup as it is stored: a folder with the manifest and a file for each part, or one tar archive of them. All functions block."""

from __future__ import annotations

import hashlib
import json
import os.path
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from triplicate.errors import ArgumentError, BackupDamaged, NotKept
from triplicate.log import KeySource
from triplicate.runtime import Host
from triplicate.sql.backup.core import manifest as manifests
from triplicate.sql.backup.core import tar_format
from triplicate.sql.backup.core.manifest import Manifest, Part, decode_manifest, digest_text
from triplicate.sql.backup.core.part_cipher import BackupKey, PartDecryptor, PartEncryptor, unsealed
from triplicate.sql.backup.core.record_file import BatchFrame, RecordFileReader
from triplicate.sql.backup.core.target import AtPosition, AtTime, Target, TargetSearch, time_text
from triplicate.sql.backup.past_copy import APPLY_ENTRIES, APPLY_SIZE_BYTES
from triplicate.sql.backup.work_file import WorkFile, WorkFileState
from triplicate.sql.storage.sqlite_copy import check_room, delete_file

ARCHIVE_SUFFIX = ".tar"
"""A backup at a path with this suffix is one file."""
READ_BYTES = 1024 * 1024
SEALED_NAME = "administrator"
"""In the place of a file's name for what is sealed in the manifest."""
_MEMBERS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class PartPlace:
    """Where a part's bytes are."""

    path: str
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup whose manifest was read and whose parts are there with their lengths. Their digests are not checked yet."""

    path: str
    manifest: Manifest
    parts: Mapping[str, PartPlace]
    key: BackupKey | None = None
    """Under which its files are encrypted; None for a backup in clear."""


def manifest_path(folder: str) -> str:
    return os.path.join(folder, manifests.FILE_NAME)


def is_archive(path: str) -> bool:
    """Whether a backup at this path is one file."""
    return path.endswith(ARCHIVE_SUFFIX)


def open_backup(host: Host, path: str, keys: KeySource | None = None) -> Backup:
    """Open a backup.

    Args:
        keys: for an encrypted one.

    Raises:
        ArgumentError: there is none, or its key is missing or another. BackupDamaged: the manifest was changed, or a part is missing or has
            another length. FormatError: a later release wrote it.
    """
    files: Mapping[str, PartPlace]
    if host.disk.exists(manifest_path(path)):
        files = _files_of_folder(host, path)
    elif is_archive(path) and host.disk.exists(path):
        files = _members(host, path)
    else:
        raise ArgumentError(f"there is no backup at {path}: it is a folder with {manifests.FILE_NAME}, or a file *{ARCHIVE_SUFFIX}")
    listed = files.get(manifests.FILE_NAME)
    if listed is None or listed.size_bytes > manifests.SIZE_MAX:
        raise BackupDamaged(f"{path} has no {manifests.FILE_NAME} that can be read")
    manifest = decode_manifest(b"".join(_chunks(host, listed)), f"{manifests.FILE_NAME} of {path}")
    key = key_of(manifest, path, keys)
    if key is not None and manifest.sealed:
        manifest = replace(manifest, administrator=_administrator(key, manifest, path))
    for part in manifest.parts:
        found = files.get(part.file)
        if found is None:
            raise BackupDamaged(f"part {part.file} of the backup at {path} is missing")
        if found.size_bytes != part.size_bytes:
            raise BackupDamaged(
                f"part {part.file} of the backup at {path} has {found.size_bytes} bytes; it was written with {part.size_bytes}"
            )
    return Backup(path, manifest, {part.file: files[part.file] for part in manifest.parts}, key)


def key_of(manifest: Manifest, path: str, keys: KeySource | None) -> BackupKey | None:
    """The key of a backup; None for one in clear. Raises ArgumentError: it is not among the keys."""
    if not manifest.key_id:
        return None
    found = None if keys is None else keys.find(manifest.key_id)
    if found is None:
        where = "give the file that has it as --key-file" if keys is None else f"it is not in {keys.place}"
        raise ArgumentError(f"the backup at {path} is encrypted under key {manifest.key_id!r}: {where}")
    return BackupKey(manifest.key_id, found)


def _administrator(key: BackupKey, manifest: Manifest, path: str) -> tuple[str, str] | None:
    """The sealed field of the manifest. It also shows a wrong key before anything else is read."""
    try:
        value = json.loads(unsealed(key, manifest.identity, SEALED_NAME, bytes.fromhex(manifest.sealed), path))
    except BackupDamaged:
        raise ArgumentError(
            f"the backup at {path} does not open with the given key {key.key_id!r}: it was made with another key of this id, or its "
            "manifest was changed"
        ) from None
    return None if value is None else (str(value[0]), str(value[1]))


def _files_of_folder(host: Host, folder: str) -> dict[str, PartPlace]:
    found: dict[str, PartPlace] = {}
    for name in host.disk.names(folder):
        path = os.path.join(folder, name)
        with closing(host.disk.open(path, readonly=True)) as file:
            found[name] = PartPlace(path, 0, file.size())
    return found


def _members(host: Host, path: str) -> dict[str, PartPlace]:
    found: dict[str, PartPlace] = {}
    with closing(host.disk.open(path, readonly=True)) as file:
        offset, size = 0, file.size()
        while len(found) <= _MEMBERS_MAX:
            member = tar_format.decode_header(file.pread(tar_format.BLOCK, offset), path)
            if member is None:
                return found
            offset += tar_format.BLOCK
            if offset + member.size_bytes > size:
                break
            found[member.name] = PartPlace(path, offset, member.size_bytes)
            offset += member.size_bytes + tar_format.padding(member.size_bytes)
    raise BackupDamaged(f"{path} is cut off")


def _chunks(host: Host, extent: PartPlace) -> Iterator[bytes]:
    with closing(host.disk.open(extent.path, readonly=True)) as file:
        done = 0
        while done < extent.size_bytes:
            chunk = file.pread(min(READ_BYTES, extent.size_bytes - done), extent.offset + done)
            if not chunk:
                raise BackupDamaged(f"{extent.path} ends at byte {extent.offset + done}")
            done += len(chunk)
            yield chunk
            host.step_aside()


def digest_of_file(host: Host, path: str) -> tuple[str, int]:
    """The digest and the length of a file."""
    with closing(host.disk.open(path, readonly=True)) as file:
        extent = PartPlace(path, 0, file.size())
    digest = hashlib.sha256()
    for chunk in _chunks(host, extent):
        digest.update(chunk)
    return digest_text(digest), extent.size_bytes


def encrypt_file(host: Host, path: str, target: str, encryptor: PartEncryptor) -> None:
    """Write an encrypted copy of a file. Raises EnvironmentFault: the disk has no room."""
    with closing(host.disk.open(path, readonly=True)) as file:
        extent = PartPlace(path, 0, file.size())
    check_room(host, target, extent.size_bytes, "the backup")
    with closing(host.disk.open(target, create=True)) as file:
        file.truncate(0)
        offset = file.pwrite([encryptor.start], 0)
        for chunk in _chunks(host, extent):
            offset += file.pwrite([encryptor.feed(chunk)], offset)
        file.pwrite([encryptor.finish()], offset)
        file.sync()


def _check_digest(backup: Backup, part: Part, found: str) -> None:
    if found != part.digest:
        raise BackupDamaged(
            f"part {part.file} of the backup at {backup.path} is damaged: its digest is {found}, the manifest has {part.digest}"
        )


def verify_part(host: Host, backup: Backup, part: Part) -> None:
    """Compare a part with its digest.

    Raises:
        BackupDamaged: it was changed. FormatError: a later release wrote it.
    """
    digest = hashlib.sha256()
    for chunk in _chunks(host, backup.parts[part.file]):
        digest.update(chunk)
    _check_digest(backup, part, digest_text(digest))


def _content(host: Host, backup: Backup, part: Part, digest: Any = None) -> Iterator[bytes]:
    """The content of a part, decrypted. `digest` is updated with its bytes as they are stored. Raises BackupDamaged, FormatError."""
    decryptor = None
    if backup.key is not None:
        decryptor = PartDecryptor(backup.key, backup.manifest.identity, part.file, f"part {part.file} of the backup at {backup.path}")
    for chunk in _chunks(host, backup.parts[part.file]):
        if digest is not None:
            digest.update(chunk)
        if decryptor is None:
            yield chunk
        else:
            yield from decryptor.feed(chunk)
    if decryptor is not None:
        yield decryptor.finish()


def verify(host: Host, backup: Backup) -> None:
    """Compare every part with its digest, and check that its batches are a chain. Raises as `verify_part`."""
    for part in backup.manifest.parts:
        verify_part(host, backup, part)
    if backup.key is not None:
        for _ in _content(host, backup, backup.manifest.full):
            pass
    for part in backup.manifest.increments:
        for _ in _frames(host, backup, part):
            pass


def _frames(host: Host, backup: Backup, part: Part) -> Iterator[BatchFrame]:
    reader = RecordFileReader(f"part {part.file} of the backup at {backup.path}", part.first)
    for chunk in _content(host, backup, part):
        yield from reader.feed(chunk)
    reader.finish(part.end)


def copy_full(host: Host, backup: Backup, path: str) -> None:
    """Copy the full part to a file, and compare it with its digest. Raises as `verify_part`; EnvironmentFault: the disk has no room."""
    part = backup.manifest.full
    check_room(host, path, part.size_bytes, f"the copy of {backup.path}")
    digest, offset = hashlib.sha256(), 0
    with closing(host.disk.open(path, create=True)) as file:
        file.truncate(0)
        for chunk in _content(host, backup, part, digest):
            offset += file.pwrite([chunk], offset)
    _check_digest(backup, part, digest_text(digest))


def rebuild(host: Host, backup: Backup, target: Target | None, path: str) -> WorkFileState:
    """Make the database of a backup as a SQLite file with the internal tables, as it was at a target. Every part is verified first.

    Args:
        target: None for everything that the backup has. path: no file has it.

    Raises:
        NotKept: the backup does not reach to the target. BackupDamaged, FormatError: see `verify_part`. No file is left then.
    """
    manifest = backup.manifest
    _check_end(backup, target)
    file = WorkFile(host, path, bytes.fromhex(manifest.identity))
    try:
        delete_file(host, path)
        copy_full(host, backup, path)
        for part in manifest.increments:
            verify_part(host, backup, part)
        state = file.open()
        if state.position != manifest.full.end:
            raise BackupDamaged(f"part {manifest.full.file} stands at position {state.position}, the manifest has {manifest.full.end}")
        if _is_before(target, state):
            raise _not_in_backup(backup, target, state)
        search = TargetSearch(target, state.position)
        for part in manifest.increments:
            if not search.reached:
                _apply_part(host, backup, part, file, search)
        if search.is_missing:
            raise _not_in_backup(backup, target, state)
        made = file.close()
        if target is None and (made.position, made.schema) != (manifest.end, manifest.schema):
            raise BackupDamaged(f"the backup at {backup.path} leads to position {made.position} and another schema than its manifest has")
    except BaseException:
        file.delete()
        raise
    return made


def _apply_part(host: Host, backup: Backup, part: Part, file: WorkFile, search: TargetSearch) -> None:
    held: list[BatchFrame] = []
    size = 0
    for frame in _frames(host, backup, part):
        if search.reached:
            return
        held.append(frame)
        size += sum(map(len, frame.records))
        if len(held) >= APPLY_ENTRIES or size >= APPLY_SIZE_BYTES:
            file.apply(held, search)
            held, size = [], 0
    if held:
        file.apply(held, search)


def _check_end(backup: Backup, target: Target | None) -> None:
    """Raises NotKept: transactions may have been committed between the end of the backup and the time that is wanted."""
    made_ms = backup.manifest.parts[-1].made_ms
    if isinstance(target, AtTime) and target.time_ms > made_ms:
        raise NotKept(
            f"the backup at {backup.path} does not reach {target}: it has what was committed before {time_text(made_ms)}; "
            "add to it (--incremental), or name no point in time for its end"
        )


def _is_before(target: Target | None, state: WorkFileState) -> bool:
    match target:
        case AtPosition(position):
            return position < state.position
        case AtTime(time_ms):
            return time_ms < state.time_ms
    return False


def _not_in_backup(backup: Backup, target: Target | None, oldest: WorkFileState) -> NotKept:
    last = backup.manifest.parts[-1]
    return NotKept(
        f"the backup at {backup.path} does not have {target}: it reaches from position {oldest.position} ({time_text(oldest.time_ms)}) to "
        f"position {last.end} ({time_text(last.time_ms)})"
    )
