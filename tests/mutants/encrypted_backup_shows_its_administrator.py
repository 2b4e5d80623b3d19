"""The manifest of an encrypted backup has the administrator's verifier in clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.sql.backup import backup_writer
from triplicate.sql.backup.core.manifest import Manifest, encode_manifest

TESTS = ["tests/unit/sql/hosting/test_database_backups.py::test_an_encrypted_backup_shows_nothing_and_needs_its_key"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def encode(manifest: Manifest) -> bytes:
        return encode_manifest(replace(manifest, key_id="", sealed=""))

    patch(backup_writer, "encode_manifest", encode)
