"""The encryption of a backup's files: what is changed, moved or cut off does not decrypt."""

from __future__ import annotations

import pytest

from triplicate.errors import BackupDamaged, FormatError
from triplicate.sql.backup.core.part_cipher import (
    BLOCK_BYTES,
    START_BYTES,
    TAG_BYTES,
    BackupKey,
    PartDecryptor,
    PartEncryptor,
    sealed,
    unsealed,
)

KEY, SALT = BackupKey("2026-01", bytes(range(32))), b"s" * 16
STORED = BLOCK_BYTES + TAG_BYTES


def encrypted(content: bytes, step: int = 100_000, name: str = "full-7.sqlite") -> bytes:
    encryptor = PartEncryptor(KEY, SALT, "ab", name)
    return encryptor.start + b"".join(encryptor.feed(content[at : at + step]) for at in range(0, len(content), step)) + encryptor.finish()


def decrypted(data: bytes, step: int = 100_000, key: BackupKey = KEY, identity: str = "ab", name: str = "full-7.sqlite") -> bytes:
    decryptor = PartDecryptor(key, identity, name, "part")
    parts = [part for at in range(0, len(data), step) for part in decryptor.feed(data[at : at + step])]
    return b"".join([*parts, decryptor.finish()])


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES, 2 * BLOCK_BYTES + 7])
def test_a_file_is_decrypted_as_it_was_however_it_is_cut_into_reads(size: int) -> None:
    content = bytes(at % 251 for at in range(size))
    data = encrypted(content)
    blocks = max(1, -(-size // BLOCK_BYTES))
    assert len(data) == START_BYTES + size + blocks * TAG_BYTES
    assert data == encrypted(content, step=BLOCK_BYTES + 3)
    assert decrypted(data) == decrypted(data, step=STORED) == decrypted(data, step=len(data)) == content


def test_a_block_that_is_changed_moved_or_left_out_is_refused() -> None:
    content = b"a" * BLOCK_BYTES + b"b" * BLOCK_BYTES + b"c"
    data = encrypted(content)
    first, second = data[START_BYTES : START_BYTES + STORED], data[START_BYTES + STORED : START_BYTES + 2 * STORED]
    start, last = data[:START_BYTES], data[START_BYTES + 2 * STORED :]
    for damaged in (
        data[:100] + bytes([data[100] ^ 1]) + data[101:],
        data[:10] + bytes([data[10] ^ 1]) + data[11:],
        start + second + first + last,
        start + first + last,
        start + first + second,
        start + first,
        data + last,
        data[:-1],
        start,
        data[: START_BYTES - 1],
        b"SQLite format 3\0" + data,
    ):
        with pytest.raises(BackupDamaged):
            decrypted(damaged)
    with pytest.raises(FormatError, match="version 2"):
        decrypted(data[:4] + b"\x02" + data[5:])


def test_a_file_belongs_to_its_key_its_database_and_its_name() -> None:
    data = encrypted(b"content")
    with pytest.raises(BackupDamaged, match="does not decrypt under key '2026-01'"):
        decrypted(data, key=BackupKey("2026-01", bytes(32)))
    for identity, name in (("cd", "full-7.sqlite"), ("ab", "full-8.sqlite")):
        with pytest.raises(BackupDamaged):
            decrypted(data, identity=identity, name=name)
    assert unsealed(KEY, "ab", "x", sealed(KEY, SALT, "ab", "x", b"secret"), "manifest") == b"secret"
    assert "bytes" not in repr(KEY)
    assert repr(KEY) == "BackupKey('2026-01')"
