"""The manifest of a backup, and the chain of its parts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from triplicate.errors import BackupDamaged, FormatError
from triplicate.sql.backup.core.manifest import Manifest, Part, PartKind, _own_digest, check_chain, decode_manifest, encode_manifest

DIGEST = "sha256:" + "0" * 64
FULL = Part("full-4-1.sqlite", PartKind.FULL, 10, DIGEST, 0, 4, 1, 1000, 1)
FIRST = Part("log-4-6.records", PartKind.LOG, 10, DIGEST, 4, 6, 1, 2000, 2)
SECOND = Part("log-6-9.records", PartKind.LOG, 10, DIGEST, 6, 9, 2, 3000, 3)
MANIFEST = Manifest("shop", "ab" * 16, "log", "id", 750, "cd" * 16, (FULL, FIRST, SECOND))


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (FIRST, SECOND),
        (FULL, SECOND),
        (FULL, FIRST, FIRST),
        (FULL, SECOND, FIRST),
        (FULL, FULL),
        (FULL, replace(FIRST, end=4)),
        (FULL, replace(FIRST, first=3)),
    ],
)
def test_parts_that_are_no_chain_are_refused(parts: tuple[Part, ...]) -> None:
    with pytest.raises(BackupDamaged):
        check_chain(parts)
    with pytest.raises(BackupDamaged):
        decode_manifest(encode_manifest(replace(MANIFEST, parts=parts)), "it")


def test_a_part_is_added_only_where_the_chain_ends() -> None:
    short = replace(MANIFEST, parts=(FULL, FIRST))
    assert short.followed_by(SECOND, MANIFEST.schema) == MANIFEST
    with pytest.raises(BackupDamaged, match="gap"):
        replace(MANIFEST, parts=(FULL,)).followed_by(SECOND, "")


def test_any_change_of_the_manifest_is_noticed() -> None:
    data = encode_manifest(MANIFEST)
    assert decode_manifest(data, "it") == MANIFEST
    noticed = 0
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        try:
            found = decode_manifest(bytes(changed), "it")
        except (BackupDamaged, FormatError):
            noticed += 1
        else:
            assert found == MANIFEST  # White space between two values.
    assert noticed > len(data) * 0.8


def test_names_that_lead_out_of_the_folder_are_refused() -> None:
    for name in ("../x", "full-/x", "full-..\\x", "manifest.json", "/etc/passwd"):
        with pytest.raises(BackupDamaged):
            decode_manifest(encode_manifest(replace(MANIFEST, parts=(replace(FULL, file=name),))), "it")


def test_a_later_format_is_refused_by_its_number() -> None:
    value = json.loads(encode_manifest(MANIFEST))
    with pytest.raises(FormatError, match="format 3"):
        decode_manifest(json.dumps({**value, "format": 3}).encode(), "it")


def test_an_encrypted_backup_names_its_key_and_keeps_its_administrator_sealed() -> None:
    manifest = replace(MANIFEST, administrator=("ann", "verifier"), key_id="2026-01", sealed="00ff")
    data = encode_manifest(manifest)
    assert b"verifier" not in data
    assert decode_manifest(data, "it") == replace(manifest, administrator=None)
    for change in ({"key": "../x"}, {"key": ""}, {"sealed": "no digits"}, {"sealed": None}):
        changed = {**json.loads(data), **change}
        with pytest.raises(BackupDamaged, match="lacks a field"):
            decode_manifest(_with_digest(changed), "it")
    with pytest.raises(FormatError, match="unknown field 'key'"):
        decode_manifest(_with_digest({**json.loads(encode_manifest(MANIFEST)), "key": "a"}), "it")


def _with_digest(value: dict[str, object]) -> bytes:
    return json.dumps({**value, "digest": _own_digest(value)}).encode()


def test_the_verifier_of_the_administrator_is_not_shown() -> None:
    assert "secret" not in repr(replace(MANIFEST, administrator=("ann", "secret")))
