"""The list of a log's snapshots: one node, JSON, changed by compare-and-set. Pure: encoding, decoding and the changes of the list.

A snapshot has a position in the log and contains all records before it, so the log may be truncated there once enough good ones are listed.
`docs/formats/snapshot.md` fixes the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from triplicate.errors import CorruptionError, FormatError
from triplicate.log.core.head import TEXT_LIMIT, dump_node, load_node

VERSION = 1
LEDGER_FORMAT = 1
"""Version of the ledger that holds a snapshot's content; see `core.snapshot_format`."""
KEPT = 2
"""Number of good snapshots that stay listed: the newest is loaded, and the older one is used if the newest is damaged."""


class SnapshotState(StrEnum):
    GOOD = "good"
    DAMAGED = "damaged"


class LogLength(NamedTuple):
    """How far a log was written at one time: the ledger of the segment written last, and that segment's length in bytes."""

    ledger_id: int
    size_bytes: int


NO_SEGMENTS = LogLength(-1, 0)
"""The length of a log without segments."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One listed snapshot.

    Args:
        snapshot_id: 32 hexadecimal digits.
        ledger_id: the ledger that holds the content.
        position: offset after the last record that is part of the content.
        epoch: of the last batch that is part of the content.
        time_ms: when the copy was taken, milliseconds since the epoch, by its maker's clock.
        size_bytes: length of the content, not compressed.
        stored_bytes: sum of the payload lengths of the ledger's entries.
        chunks: how many entries hold content.
        digest: ``sha256:`` and 64 hexadecimal digits over the content.
        machine: the kind of state machine, for example ``sql``.
        content: the format of the content, for example ``sqlite``.
        identity: which database it is a copy of, hexadecimal.
        node: the node that made it.
        log_ledger: the segment of the log that was written last when the copy was taken; -1 where there was none.
        log_bytes: the length of that segment at that time. The two show how much the log has grown since.
        ledger_format: format of the ledger's entries.
        reason: why it is damaged; empty for a good one.
    """

    snapshot_id: str
    ledger_id: int
    position: int
    epoch: int
    time_ms: int
    size_bytes: int
    stored_bytes: int
    chunks: int
    digest: str
    machine: str
    content: str
    identity: str
    node: str
    log_ledger: int = -1
    log_bytes: int = 0
    ledger_format: int = LEDGER_FORMAT
    state: SnapshotState = SnapshotState.GOOD
    reason: str = ""

    @property
    def is_good(self) -> bool:
        return self.state is SnapshotState.GOOD


@dataclass(frozen=True, slots=True)
class SnapshotList:
    """The contents of a log's snapshots node.

    Args:
        snapshots: oldest first.
        wanted: a snapshot at this offset or beyond was requested and is not listed yet; None when none is.
    """

    snapshots: tuple[Snapshot, ...] = ()
    wanted: int | None = None

    @property
    def newest(self) -> Snapshot | None:
        """The last one listed, good or damaged: an attempt to add another names it."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def good(self) -> tuple[Snapshot, ...]:
        """The good ones, oldest first."""
        return tuple(snapshot for snapshot in self.snapshots if snapshot.is_good)

    @property
    def newest_id(self) -> str | None:
        return None if self.newest is None else self.newest.snapshot_id

    def find(self, snapshot_id: str) -> Snapshot | None:
        return next((snapshot for snapshot in self.snapshots if snapshot.snapshot_id == snapshot_id), None)


def add(listed: SnapshotList, snapshot: Snapshot, after: str | None) -> SnapshotList | None:
    """The list with another snapshot, or None if it has changed since the attempt began, which has failed then.

    Args:
        after: id of the newest snapshot that was listed when the copy was taken, or None if there was none.
    """
    if listed.newest_id != after or any(snapshot.position < other.position for other in listed.good):
        return None
    # A damaged snapshot stays listed until a good one takes its place, so that operators see it.
    kept = [*listed.good[-(KEPT - 1) :], snapshot]
    wanted = listed.wanted if listed.wanted is not None and snapshot.position < listed.wanted else None
    return SnapshotList(tuple(kept), wanted)


def mark_damaged(listed: SnapshotList, snapshot_id: str, reason: str) -> SnapshotList | None:
    """The list with one snapshot marked as damaged, or None if it is not listed as a good one."""
    found = listed.find(snapshot_id)
    if found is None or not found.is_good:
        return None
    clipped = reason.encode()[:TEXT_LIMIT].decode(errors="ignore")
    marked = replace(found, state=SnapshotState.DAMAGED, reason=clipped)
    return replace(listed, snapshots=tuple(marked if item is found else item for item in listed.snapshots))


def want(listed: SnapshotList, position: int) -> SnapshotList | None:
    """The list with a request for a snapshot at `position` or beyond, or None if there is one, listed or requested."""
    if any(snapshot.position >= position for snapshot in listed.good) or (listed.wanted is not None and listed.wanted >= position):
        return None
    return replace(listed, wanted=position)


def truncation_offset(listed: SnapshotList) -> int | None:
    """The offset before which the log is no longer needed: the position of the older of the last two good snapshots.

    None while fewer than two are good: otherwise a damaged snapshot would lose the log before it as well.
    """
    good = listed.good
    return good[-KEPT].position if len(good) >= KEPT else None


def sources(listed: SnapshotList, beyond: int) -> list[Snapshot]:
    """Good snapshots that stand beyond an offset, in the order in which they are tried: newest first."""
    return [snapshot for snapshot in reversed(listed.good) if snapshot.position > beyond]


_FIELDS: tuple[tuple[str, str, type], ...] = (
    ("id", "snapshot_id", str),
    ("ledger", "ledger_id", int),
    ("position", "position", int),
    ("epoch", "epoch", int),
    ("time", "time_ms", int),
    ("bytes", "size_bytes", int),
    ("stored", "stored_bytes", int),
    ("chunks", "chunks", int),
    ("digest", "digest", str),
    ("machine", "machine", str),
    ("content", "content", str),
    ("identity", "identity", str),
    ("node", "node", str),
    ("log_ledger", "log_ledger", int),
    ("log_bytes", "log_bytes", int),
    ("format", "ledger_format", int),
    ("reason", "reason", str),
)


def encode_snapshots(listed: SnapshotList) -> bytes:
    """The snapshots node.

    Raises:
        ArgumentError: it would exceed 64 KiB, which the limits of its texts prevent.
    """
    items: list[dict[str, Any]] = [
        {**{key: getattr(snapshot, name) for key, name, _ in _FIELDS}, "state": snapshot.state.value} for snapshot in listed.snapshots
    ]
    return dump_node({"snapshots": items, "v": VERSION, "wanted": listed.wanted}, "the snapshots of a log")


def decode_snapshots(data: bytes, name: str) -> SnapshotList:
    """Read the snapshots node of log `name`.

    Raises:
        FormatError: a version, state or field that this release does not know. CorruptionError: any other invalid content.
    """
    what = f"the list of snapshots of log {name!r}"
    value = load_node(data, what, VERSION)
    _refuse_unknown(value, frozenset(("snapshots", "v", "wanted")), what)
    try:
        wanted = value["wanted"]
        if wanted is not None and type(wanted) is not int:
            raise TypeError(f"wanted is {wanted!r}")
        return SnapshotList(tuple(_snapshot_of(item, what) for item in value["snapshots"]), wanted)
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"{what} lacks a field or has a wrong one: {error!r}") from error


def _refuse_unknown(value: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    # A change rewrites the whole node, so an unknown field would be lost.
    unknown = sorted(set(value) - known)
    if unknown:
        raise FormatError(f"{what} has unknown field {unknown[0]!r}: upgrade Triplicate")


def _snapshot_of(value: dict[str, Any], what: str) -> Snapshot:
    _refuse_unknown(value, frozenset(key for key, _, _ in _FIELDS) | {"state"}, what)
    for key, _, kind in _FIELDS:
        if type(value[key]) is not kind:
            raise TypeError(f"{key} is {value[key]!r}")
    try:
        state = SnapshotState(value["state"])
    except ValueError as error:
        raise FormatError(f"{what} has a snapshot in unknown state {value['state']!r}: upgrade Triplicate") from error
    return Snapshot(**{name: value[key] for key, name, _ in _FIELDS}, state=state)
