"""A log's head and its pages: values and their JSON. `docs/formats/log.md` fixes the form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any

from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, CorruptionError, FormatError

VERSION = 2
"""Version of heads and pages. Version 1 has neither purposes nor reduced segments; it is read, and written back as version 2."""
SIDE_VERSION = 1
"""Version of the nodes beside the head: publishers and the living writer."""
NODE_LIMIT_BYTES = 64 * 1024
"""Size limit of each node of a log."""
TEXT_LIMIT = 256
"""Length limit of owner names, archive file names and digests, bytes, so that no list of them exceeds the limit of a node."""


class SegmentState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    DELETING = "deleting"
    ARCHIVED = "archived"
    LOST = "lost"
    """Its ledger is lost for good. It stays in the list so that its offsets are not used again."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Where a segment's records are after its ledger was copied to a file."""

    file: str
    digest: str


class PurposeKind(StrEnum):
    USER = "user"
    DATABASE = "database"
    KEY_VALUE = "key-value"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True)
class Purpose:
    """The owner of a log: a user, a database, a key-value store or a pipeline. Only programs of the owner may change it.

    Args:
        name: of the database, key-value store or pipeline; empty for a user's log.
    """

    kind: PurposeKind = PurposeKind.USER
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name!r}" if self.name else self.kind.value


USER = Purpose()
_DATABASE_LOG = re.compile(r"database\.(.+)\.[0-9a-f]{8}")
"""Names of databases' logs; a head of version 1 has no other sign of its purpose."""


@dataclass(frozen=True, slots=True)
class Quorums:
    """The quorums of a segment that was created while bookies were short: smaller than the log's settings, never below its ack quorum."""

    ensemble_size: int
    write_quorum: int


@dataclass(frozen=True, slots=True)
class LogSegment:
    """One ledger in the list of a log.

    Args:
        ledger_id: ids carry no order.
        first_offset: offset of its first record.
        records: number of its records; 0 while it is open.
        size_bytes: sum of the payload lengths of its entries.
        last_entry: last entry id; -1 while open or if there is none.
        min_time_us, max_time_us: wall times of its first and last entry.
        reduced: its quorums if they are smaller than the log's settings; None for a segment with all copies.
    """

    ledger_id: int
    first_offset: int
    records: int = 0
    size_bytes: int = 0
    last_entry: int = -1
    min_time_us: int = 0
    max_time_us: int = 0
    state: SegmentState = SegmentState.OPEN
    archive: Archive | None = None
    reduced: Quorums | None = None

    @property
    def end_offset(self) -> int:
        """Offset after its last record. For an open segment its first offset, since its records are not listed yet."""
        return self.first_offset + self.records


@dataclass(frozen=True, slots=True)
class PageReference:
    """A reference to a page from the head or from a page above. A `page` below 0 is a page of a change that is not written yet.

    Args:
        size_bytes: sum of the sizes of the segments beneath, without those marked for deletion; None if an earlier release wrote it.
    """

    page: int
    level: int
    first_offset: int
    end_offset: int
    count: int
    min_time_us: int
    max_time_us: int
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Immutable; on level 0 the items are segments, above they are references to pages one level down."""

    level: int
    segments: tuple[LogSegment, ...] = ()
    references: tuple[PageReference, ...] = ()


@dataclass(frozen=True, slots=True)
class Owner:
    """The writer whose take-over raised the epoch last. The token distinguishes take-overs of one name."""

    name: str
    token: str


@dataclass(frozen=True, slots=True)
class Head:
    log_id: str
    epoch: int
    token: str
    owner: Owner | None
    first_offset: int
    open: LogSegment | None
    recent: tuple[LogSegment, ...]
    pages: tuple[PageReference, ...]
    settings: LogSettings
    created_ms: int
    deleted: bool = False
    past_time_us: int = 0
    """The latest wall time of segments that have left the list."""
    purpose: Purpose = USER
    """Fixed when the log is created."""
    key_id: str = ""
    """The key under which writers encrypt from now on; empty: the log is not encrypted. Whether it is is fixed when it is created."""

    @property
    def closed_end(self) -> int:
        """Offset after the last record of closed segments: where the open segment begins."""
        if self.open is not None:
            return self.open.first_offset
        if self.recent:
            return max(self.first_offset, self.recent[-1].end_offset)
        return max(self.first_offset, self.pages[-1].end_offset if self.pages else 0)

    @property
    def last_time_us(self) -> int:
        """The latest wall time in any closed segment, also in those that have been deleted; 0 if there never was one."""
        times = [self.past_time_us] + [segment.max_time_us for segment in self.recent] + [reference.max_time_us for reference in self.pages]
        return max(times)


def check_text(what: str, text: str) -> str:
    """A text that goes into a node, if it is short enough.

    Raises:
        ArgumentError: it is longer than 256 bytes, or no text.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"{what} is a str, not {type(text).__name__}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{what} is no UTF-8: {error}") from error
    if size > TEXT_LIMIT:
        raise ArgumentError(f"{what} has {size} bytes; at most {TEXT_LIMIT} are possible")
    return text


def dump_node(value: Mapping[str, Any], what: str) -> bytes:
    """A node's JSON. Raises ArgumentError: it would pass 64 KiB."""
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    if len(data) > NODE_LIMIT_BYTES:
        raise ArgumentError(f"{what} would have {len(data)} bytes; a node has at most {NODE_LIMIT_BYTES}")
    return data


def load_node(data: bytes, what: str, newest: int) -> dict[str, Any]:
    """A node's fields, its version checked.

    Raises:
        FormatError: a version beyond `newest`. CorruptionError: it is no JSON object.
    """
    try:
        value = json.loads(data)
    except ValueError as error:
        raise CorruptionError(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CorruptionError(f"{what} is not a JSON object")
    version = value.get("v")
    if not isinstance(version, int) or not 1 <= version <= newest:
        raise FormatError(f"{what} has format version {version!r}; this release reads versions up to {newest}: upgrade Triplicate")
    return value


def _segment_json(segment: LogSegment) -> dict[str, Any]:
    value: dict[str, Any] = {
        "bytes": segment.size_bytes,
        "first": segment.first_offset,
        "last": segment.last_entry,
        "ledger": segment.ledger_id,
        "max": segment.max_time_us,
        "min": segment.min_time_us,
        "records": segment.records,
        "state": segment.state.value,
    }
    if segment.archive is not None:
        value["archive"] = {"digest": segment.archive.digest, "file": segment.archive.file}
    if segment.reduced is not None:
        value["reduced"] = {"ensemble": segment.reduced.ensemble_size, "write": segment.reduced.write_quorum}
    return value


def _segment_of(value: dict[str, Any], what: str) -> LogSegment:
    try:
        state = SegmentState(value["state"])
    except ValueError as error:
        raise FormatError(f"{what} has a segment in unknown state {value['state']!r}: upgrade Triplicate") from error
    archive, reduced = value.get("archive"), value.get("reduced")
    return LogSegment(
        value["ledger"],
        value["first"],
        value["records"],
        value["bytes"],
        value["last"],
        value["min"],
        value["max"],
        state,
        Archive(archive["file"], archive["digest"]) if archive else None,
        Quorums(reduced["ensemble"], reduced["write"]) if reduced else None,
    )


def _reference_json(reference: PageReference) -> dict[str, int]:
    return {
        **({} if reference.size_bytes is None else {"bytes": reference.size_bytes}),
        "count": reference.count,
        "end": reference.end_offset,
        "first": reference.first_offset,
        "level": reference.level,
        "max": reference.max_time_us,
        "min": reference.min_time_us,
        "page": reference.page,
    }


def _reference_of(value: dict[str, int]) -> PageReference:
    return PageReference(
        value["page"], value["level"], value["first"], value["end"], value["count"], value["min"], value["max"], value.get("bytes")
    )


def encode_head(head: Head) -> bytes:
    """The head's node.

    Raises:
        ArgumentError: it would exceed 64 KiB, which `core.head_changes` prevents.
    """
    return dump_node(
        {
            "created": head.created_ms,
            "deleted": head.deleted,
            "epoch": head.epoch,
            "first": head.first_offset,
            "id": head.log_id,
            **({"key": head.key_id} if head.key_id else {}),
            "open": None if head.open is None else _segment_json(head.open),
            "owner": None if head.owner is None else {"name": head.owner.name, "token": head.owner.token},
            "pages": [_reference_json(reference) for reference in head.pages],
            **({"past": head.past_time_us} if head.past_time_us else {}),
            "purpose": {"kind": head.purpose.kind.value, "name": head.purpose.name},
            "recent": [_segment_json(segment) for segment in head.recent],
            "settings": asdict(head.settings),
            "token": head.token,
            "v": VERSION,
        },
        "the head of a log",
    )


def decode_head(data: bytes, name: str) -> Head:
    """Read the head of log `name`.

    Raises:
        FormatError: a version, state or setting that this release does not know. CorruptionError: any other invalid content.
    """
    what = f"the head of log {name!r}"
    value = load_node(data, what, VERSION)
    _refuse_unknown(value, _HEAD_FIELDS, what)
    try:
        owner = value["owner"]
        return Head(
            value["id"],
            value["epoch"],
            value["token"],
            None if owner is None else Owner(owner["name"], owner["token"]),
            value["first"],
            None if value["open"] is None else _segment_of(value["open"], what),
            tuple(_segment_of(item, what) for item in value["recent"]),
            tuple(_reference_of(item) for item in value["pages"]),
            _settings_of(value["settings"], what),
            value["created"],
            value["deleted"],
            value.get("past", 0),
            _purpose_of(value, name, what),
            value.get("key", ""),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"{what} lacks a field or has a wrong one: {error!r}") from error


_HEAD_FIELDS = frozenset(
    ("created", "deleted", "epoch", "first", "id", "key", "open", "owner", "pages", "past", "purpose", "recent", "settings", "token", "v")
)


def _refuse_unknown(value: dict[str, Any], known: frozenset[str], what: str) -> None:
    # A change rewrites the whole node, so an unknown field would be lost.
    unknown = sorted(set(value) - known)
    if unknown:
        raise FormatError(f"{what} has unknown field {unknown[0]!r}: upgrade Triplicate")


def _purpose_of(value: dict[str, Any], name: str, what: str) -> Purpose:
    if value["v"] == 1:
        found = _DATABASE_LOG.fullmatch(name)
        return USER if found is None else Purpose(PurposeKind.DATABASE, found[1])
    purpose = value["purpose"]
    try:
        return Purpose(PurposeKind(purpose["kind"]), purpose["name"])
    except ValueError as error:
        raise FormatError(f"{what} has unknown purpose {purpose['kind']!r}: upgrade Triplicate") from error


def _settings_of(value: dict[str, Any], what: str) -> LogSettings:
    known = {field.name for field in fields(LogSettings)}
    unknown = sorted(set(value) - known)
    if unknown:
        raise FormatError(f"{what} has unknown setting {unknown[0]!r}: upgrade Triplicate")
    return LogSettings(**value)


def encode_page(page: Page) -> bytes:
    """A page's node."""
    items: list[Any] = [_segment_json(segment) for segment in page.segments] or [_reference_json(item) for item in page.references]
    return dump_node({"items": items, "level": page.level, "v": VERSION}, "a page of a log")


def decode_page(data: bytes, name: str, sequence: int) -> Page:
    """Read page `sequence` of log `name`. Raises as `decode_head`."""
    what = f"page {sequence} of log {name!r}"
    value = load_node(data, what, VERSION)
    try:
        level, items = value["level"], value["items"]
        if level == 0:
            return Page(0, segments=tuple(_segment_of(item, what) for item in items))
        return Page(level, references=tuple(_reference_of(item) for item in items))
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"{what} lacks a field or has a wrong one: {error!r}") from error


@dataclass(frozen=True, slots=True)
class PublisherState:
    """The last publish of one application: its batch, the batch's offsets, and the time."""

    batch: int
    first_offset: int
    end_offset: int
    time_ms: int


def encode_publisher(state: PublisherState) -> bytes:
    """A publisher's node."""
    return dump_node(
        {"batch": state.batch, "end": state.end_offset, "first": state.first_offset, "time": state.time_ms, "v": SIDE_VERSION},
        "a publisher's node",
    )


def decode_publisher(data: bytes, application: str) -> PublisherState:
    """Read a publisher's node. Raises as `decode_head`."""
    what = f"the last publish of {application!r}"
    value = load_node(data, what, SIDE_VERSION)
    try:
        return PublisherState(value["batch"], value["first"], value["end"], value["time"])
    except KeyError as error:
        raise CorruptionError(f"{what} lacks field {error}") from error


def encode_owner(owner: Owner) -> bytes:
    """The node of a writer that is alive."""
    return dump_node({"name": owner.name, "token": owner.token, "v": SIDE_VERSION}, "the owner of a log")


def decode_owner(data: bytes, name: str) -> Owner:
    """Read the node of a writer that is alive. Raises as `decode_head`."""
    what = f"the owner of log {name!r}"
    value = load_node(data, what, SIDE_VERSION)
    try:
        return Owner(value["name"], value["token"])
    except KeyError as error:
        raise CorruptionError(f"{what} lacks field {error}") from error


def reference_to(page: Page, sequence: int) -> PageReference:
    """The reference to a page that is not empty."""
    items: tuple[LogSegment, ...] | tuple[PageReference, ...] = page.segments or page.references
    return PageReference(
        sequence,
        page.level,
        items[0].first_offset,
        items[-1].end_offset,
        len(page.segments) + sum(reference.count for reference in page.references),
        min(item.min_time_us for item in items),
        max(item.max_time_us for item in items),
        size_beneath(items),
    )


def size_beneath(items: Sequence[LogSegment] | Sequence[PageReference]) -> int | None:
    """The sum of the sizes of segments or references, without segments marked for deletion; None if a size is unknown."""
    sizes = [0 if isinstance(item, LogSegment) and item.state is SegmentState.DELETING else item.size_bytes for item in items]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def closed_segment(
    segment: LogSegment, *, records: int, size_bytes: int, last_entry: int, min_time_us: int, max_time_us: int
) -> LogSegment:
    """The open segment as it is listed once it is closed: for deletion if it holds no records."""
    state = SegmentState.CLOSED if records else SegmentState.DELETING
    return replace(
        segment,
        records=records,
        size_bytes=size_bytes,
        last_entry=last_entry,
        min_time_us=min_time_us,
        max_time_us=max_time_us,
        state=state,
    )
