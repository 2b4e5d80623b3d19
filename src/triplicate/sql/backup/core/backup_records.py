"""The backups of a database as the metadata remember them: one node, JSON. Pure; `docs/formats/backup.md` fixes its fields.

A record says that a backup was made. Only its folder shows whether it is still there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triplicate.errors import FormatError
from triplicate.sql.backup.core.manifest import Manifest, PartKind

VERSION = 1
KEPT = 50
"""The newest records that are kept of a database."""
TEXT_MAX = 1024
"""Characters of the longest place and maker that are kept whole. All records together stay below a megabyte, the limit of ZooKeeper."""


@dataclass(frozen=True, slots=True)
class BackupRecord:
    """One part of a backup that was made.

    Args:
        kind: a full backup, or what was added to one.
        made_ms: when the making began, ms since the epoch, by the clock of the maker.
        first, end: positions of the log, end exclusive; `first` is 0 in a full part.
        time_ms: the log's time at the end, ms since the epoch; 0 where the log has none.
        size_bytes: of the part as it is stored.
        place: the path of the backup, as it was given.
        maker: user and machine, or what the program says.
        key_id: the key under which it is encrypted; empty for none.
    """

    kind: PartKind
    made_ms: int
    first: int
    end: int
    time_ms: int
    size_bytes: int
    place: str
    maker: str
    key_id: str = ""


def record_of(manifest: Manifest, place: str, maker: str) -> BackupRecord:
    """The record of the last part of a backup."""
    part = manifest.parts[-1]
    place, maker = (text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…" for text in (place, maker))
    return BackupRecord(part.kind, part.made_ms, part.first, part.end, part.time_ms, part.size_bytes, place, maker, manifest.key_id)


def with_record(records: Sequence[BackupRecord], record: BackupRecord) -> tuple[BackupRecord, ...]:
    """The records with one more, in the order of their making; the oldest beyond `KEPT` are left out. It is there once."""
    others = [one for one in records if one != record]
    return tuple(sorted((*others, record), key=lambda one: one.made_ms)[-KEPT:])


def encode_records(records: Sequence[BackupRecord]) -> bytes:
    backups = [
        {
            "kind": one.kind.value,
            "made": one.made_ms,
            "first": one.first,
            "end": one.end,
            "time": one.time_ms,
            "bytes": one.size_bytes,
            "place": one.place,
            "maker": one.maker,
            "key": one.key_id,
        }
        for one in records
    ]
    return json.dumps({"v": VERSION, "backups": backups}, sort_keys=True, separators=(",", ":")).encode()


def decode_records(data: bytes) -> tuple[BackupRecord, ...]:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != VERSION:
            raise ValueError(f"version {fields['v']}; this release knows {VERSION}")
        return tuple(map(_record, fields["backups"]))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the records of a database's backups cannot be read: {error}") from error


def _record(fields: dict[str, Any]) -> BackupRecord:
    made, first, end, time, size = (int(fields[name]) for name in ("made", "first", "end", "time", "bytes"))
    place, maker, key = (str(fields[name]) for name in ("place", "maker", "key"))
    return BackupRecord(PartKind(fields["kind"]), made, first, end, time, size, place, maker, key)
