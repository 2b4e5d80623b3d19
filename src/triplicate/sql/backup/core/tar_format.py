"""The headers of a tar archive, which is the form of a backup in one file. Pure.

The archive is that of POSIX (ustar): members of 512-byte blocks, then two blocks of zeros. `tar` lists and unpacks it.
"""

from __future__ import annotations

import tarfile
from typing import NamedTuple

from triplicate.errors import BackupDamaged

BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
_MODE = 0o600


class ArchiveMember(NamedTuple):
    name: str
    size_bytes: int


def encode_header(member: ArchiveMember, time_ms: int) -> bytes:
    info = tarfile.TarInfo(member.name)
    info.size, info.mode, info.mtime = member.size_bytes, _MODE, time_ms // 1000
    return info.tobuf(tarfile.GNU_FORMAT)


def decode_header(block: bytes, place: str) -> ArchiveMember | None:
    """The member that a block begins; None at the end of the archive. Raises BackupDamaged."""
    if block == bytes(BLOCK):
        return None
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.TarError, UnicodeDecodeError) as error:
        raise BackupDamaged(f"{place} is no backup, or is damaged: {error}") from error
    if not info.isreg() or info.size < 0:
        raise BackupDamaged(f"{place} has member {info.name!r}, which is no file")
    return ArchiveMember(info.name, info.size)


def padding(size_bytes: int) -> int:
    """Zeros behind a member's content."""
    return -size_bytes % BLOCK
