"""The manifest of a backup: what it is of, and its parts with their digests. Pure; `docs/formats/backup.md` fixes the bytes.

A backup is a chain: one full part, a SQLite file at a position of the log, then parts with the log's batches, each from the position at
which the one before ends. The manifest holds a digest of itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from triplicate.errors import BackupDamaged, FormatError

FORMAT, FORMAT_ENCRYPTED = 1, 2
"""Of a backup in clear, and of one whose files are encrypted."""
FILE_NAME = "manifest.json"
SIZE_MAX = 16 * 1024 * 1024
"""Bytes of the largest manifest that is read."""
_PART_NAME = re.compile(r"[a-z]+-[0-9a-z.-]+")
_KEY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,15}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class PartKind(StrEnum):
    FULL = "full"
    """A SQLite file with everything before its end."""
    LOG = "log"
    """Batches of the log, see `core.record_file`."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a backup.

    Args:
        first, end: offsets of the log, end exclusive; `first` is 0 in a full part.
        epoch: of the last batch before the end.
        time_ms: the log's time at the end, ms since the epoch; 0 where the log has none.
        made_ms: when the making of the part began, by the clock of its maker. Everything that was acknowledged before is in the backup.
        digest: ``sha256:`` and 64 hexadecimal digits over the file.
    """

    file: str
    kind: PartKind
    size_bytes: int
    digest: str
    first: int
    end: int
    epoch: int
    time_ms: int
    made_ms: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of ``manifest.json``.

    Args:
        database: its name. identity: its id, hexadecimal. log: the name of its log. log_id: the log's id.
        lease_ms: as in the list of databases.
        administrator: name and verifier of the administrator in that list; None without one.
        schema: digest of the schema at the end, hexadecimal.
        is_encrypted: whether the log is encrypted.
        key_id: names the key under which the files of the backup are encrypted; empty for none.
        sealed: the administrator, encrypted under that key, hexadecimal; empty without one. The field in clear is not written then.
    """

    database: str
    identity: str
    log: str
    log_id: str
    lease_ms: int
    schema: str
    parts: tuple[Part, ...]
    administrator: tuple[str, str] | None = field(default=None, repr=False)
    is_encrypted: bool = False
    key_id: str = ""
    sealed: str = field(default="", repr=False)

    @property
    def end(self) -> int:
        return self.parts[-1].end

    @property
    def full(self) -> Part:
        return self.parts[0]

    @property
    def increments(self) -> Sequence[Part]:
        return self.parts[1:]

    def followed_by(self, part: Part, schema: str) -> Manifest:
        """The manifest with one part more. Raises BackupDamaged: it does not follow."""
        longer = replace(self, parts=(*self.parts, part), schema=schema)
        check_chain(longer.parts)
        return longer


_PART_FIELDS: tuple[tuple[str, str, type], ...] = (
    ("file", "file", str),
    ("kind", "kind", str),
    ("bytes", "size_bytes", int),
    ("digest", "digest", str),
    ("first", "first", int),
    ("end", "end", int),
    ("epoch", "epoch", int),
    ("time", "time_ms", int),
    ("made", "made_ms", int),
)
_TEXTS = ("database", "identity", "log", "log_id", "schema")
_KNOWN = {FORMAT: frozenset((*_TEXTS, "administrator", "digest", "encrypted", "format", "lease", "parts"))}
_KNOWN[FORMAT_ENCRYPTED] = _KNOWN[FORMAT] | {"key", "sealed"}


def digest_text(digest: Any) -> str:
    """`digest` is a SHA-256 object of hashlib."""
    return f"sha256:{digest.hexdigest()}"


def encode_manifest(manifest: Manifest) -> bytes:
    value: dict[str, Any] = {name: getattr(manifest, name) for name in _TEXTS}
    value["format"] = FORMAT
    value["lease"] = manifest.lease_ms
    value["encrypted"] = manifest.is_encrypted
    value["administrator"] = None if manifest.administrator is None else list(manifest.administrator)
    if manifest.key_id:
        value |= {"format": FORMAT_ENCRYPTED, "key": manifest.key_id, "sealed": manifest.sealed, "administrator": None}
    value["parts"] = [{key: getattr(part, name) for key, name, _ in _PART_FIELDS} for part in manifest.parts]
    value["digest"] = _own_digest(value)
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False).encode() + b"\n"


def decode_manifest(data: bytes, place: str) -> Manifest:
    """Read a manifest.

    Args:
        place: names it in errors.

    Raises:
        BackupDamaged: it was changed, or its parts are no chain. FormatError: a later release wrote it.
    """
    try:
        value = json.loads(data)
    except ValueError as error:
        raise BackupDamaged(f"{place} is not JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("format"), int):
        raise BackupDamaged(f"{place} is not the manifest of a backup")
    known = _KNOWN.get(value["format"])
    if known is None:
        raise FormatError(
            f"{place} is of format {value['format']}; this release reads formats up to {FORMAT_ENCRYPTED}: use the release that wrote it"
        )
    if value.get("digest") != _own_digest(value):
        raise BackupDamaged(f"{place} was changed after it was written: its digest is another one")
    unknown = sorted(set(value) - known)
    if unknown:
        raise FormatError(f"{place} has unknown field {unknown[0]!r}: use the release that wrote it")
    try:
        administrator = value["administrator"]
        manifest = Manifest(
            database=_typed(value, "database", str),
            identity=bytes.fromhex(_typed(value, "identity", str)).hex(),
            log=_typed(value, "log", str),
            log_id=_typed(value, "log_id", str),
            lease_ms=_typed(value, "lease", int),
            schema=_typed(value, "schema", str),
            parts=tuple(_part_of(one) for one in value["parts"]),
            administrator=None if administrator is None else (str(administrator[0]), str(administrator[1])),
            is_encrypted=_typed(value, "encrypted", bool),
            key_id=_key_id(_typed(value, "key", str)) if "key" in known else "",
            sealed=bytes.fromhex(_typed(value, "sealed", str)).hex() if "sealed" in known else "",
        )
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise BackupDamaged(f"{place} lacks a field or has a wrong one: {error!r}") from error
    check_chain(manifest.parts)
    return manifest


def _own_digest(value: dict[str, Any]) -> str:
    content = {key: item for key, item in value.items() if key != "digest"}
    return digest_text(hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()))


def _typed(value: dict[str, Any], key: str, kind: type) -> Any:
    if type(value[key]) is not kind:
        raise TypeError(f"{key} is not of type {kind.__name__}")
    return value[key]


def _key_id(text: str) -> str:
    if not _KEY_ID.fullmatch(text):
        raise ValueError(f"key {text!r}")
    return text


def _part_of(value: dict[str, Any]) -> Part:
    fields = {name: _typed(value, key, kind) for key, name, kind in _PART_FIELDS}
    # The names are used as those of files beside the manifest.
    if not _PART_NAME.fullmatch(fields["file"]) or not _DIGEST.fullmatch(fields["digest"]) or fields["size_bytes"] < 0:
        raise ValueError(f"part {fields['file']!r}")
    return Part(**{**fields, "kind": PartKind(fields["kind"])})


def check_chain(parts: Sequence[Part]) -> None:
    """Check that the parts are one full one and a chain behind it.

    Raises:
        BackupDamaged: a part is missing, of a wrong kind, or does not begin where the one before ends.
    """
    if not parts or parts[0].kind is not PartKind.FULL:
        raise BackupDamaged("the backup does not begin with a full part")
    if len({part.file for part in parts}) != len(parts):
        raise BackupDamaged("the backup lists a part twice")
    for before, part in pairwise(parts):
        if part.kind is not PartKind.LOG:
            raise BackupDamaged(f"part {part.file} of the backup is {part.kind}, records of the log belong there")
        if part.first != before.end or part.end <= part.first:
            raise BackupDamaged(
                f"the backup has a gap: part {before.file} ends at position {before.end}, and part {part.file} has the records "
                f"from {part.first} to {part.end}"
            )
