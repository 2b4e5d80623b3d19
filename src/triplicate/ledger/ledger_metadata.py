"""The metadata of a ledger: an immutable value with the changes a ledger may go through.

Its three stored formats are in `metadata_format`. Source: BookKeeper `LedgerMetadata`, `LedgerMetadataBuilder`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from triplicate.errors import ArgumentError
from triplicate.ledger.entry import DigestType
from triplicate.ledger.schedule import check_quorums

CURRENT_FORMAT_VERSION = 3

_INT64_MAX = 2**63 - 1


class LedgerState(IntEnum):
    """The state of a ledger: open for its writer, in recovery by another client, or closed at a fixed end."""

    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


@dataclass(frozen=True, slots=True)
class EnsembleSegment:
    """The bookies that hold the entries from `first_entry_id` up to the next segment's first; a bookie's position counts."""

    first_entry_id: int
    ensemble: tuple[str, ...]
    unknown_fields: bytes = b""
    """Protobuf fields of a later release, kept as they are."""


@dataclass(frozen=True)
class LedgerMetadata:
    """The stored metadata of one ledger, checked on construction.

    Raises:
        ArgumentError: a field is out of bounds or two contradict each other; the message names them.
    """

    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    segments: tuple[EnsembleSegment, ...]
    state: LedgerState = LedgerState.OPEN
    last_entry_id: int = -1
    """-1 unless closed, and for a ledger closed without entries."""
    length: int = 0
    """Payload bytes; 0 unless closed. Clients of Apache BookKeeper may store too large a value or 0: nothing vital depends on it."""
    digest_type: DigestType = DigestType.CRC32C
    password: bytes = b""
    custom: Mapping[str, bytes] = field(default_factory=dict)
    ctime_ms: int | None = None
    """Creation, milliseconds since the epoch; None where it is only the node's own ctime."""
    creator_token: int | None = None
    """A random number by which a creator whose answer was lost recognises its own node."""
    format_version: int = CURRENT_FORMAT_VERSION
    """1, 2 or 3: metadata is written back in the version it was found in."""
    credentials_stored: bool = True
    """False for old metadata that names neither digest type nor password; the opener must know them, `password` is then empty."""
    unknown_fields: bytes = b""
    """Protobuf fields of a later release, kept as they are."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.segments))
        object.__setattr__(self, "custom", dict(self.custom))
        check_quorums(self.ensemble_size, self.write_quorum, self.ack_quorum)
        self._check_segments()
        self._check_end()
        if self.format_version not in (1, 2, 3):
            raise ArgumentError(f"format_version is {self.format_version}; 1, 2 and 3 exist")
        for name, value in (("ctime_ms", self.ctime_ms), ("creator_token", self.creator_token)):
            if value is not None and not -_INT64_MAX - 1 <= value <= _INT64_MAX:
                raise ArgumentError(f"{name} is {value}; it must fit 64 bits")

    def __hash__(self) -> int:
        # The mapping of custom metadata has no hash of its own; equal metadata still hash alike.
        return hash((self.segments, self.state, self.last_entry_id, self.length, self.creator_token))

    def _check_segments(self) -> None:
        if not self.segments:
            raise ArgumentError("segments is empty; a ledger has at least one segment")
        previous = -1
        for segment in self.segments:
            if len(segment.ensemble) != self.ensemble_size:
                raise ArgumentError(
                    f"segments: the one at entry {segment.first_entry_id} has {len(segment.ensemble)} bookies, "
                    f"ensemble_size is {self.ensemble_size}"
                )
            if not previous < segment.first_entry_id <= _INT64_MAX:
                raise ArgumentError(f"segments: first entry {segment.first_entry_id} must be greater than {previous}")
            previous = segment.first_entry_id

    def _check_end(self) -> None:
        if self.state is LedgerState.CLOSED:
            if not -1 <= self.last_entry_id <= _INT64_MAX:
                raise ArgumentError(f"last_entry_id is {self.last_entry_id}; it must be -1 (no entries) or more")
            if not 0 <= self.length <= _INT64_MAX:
                raise ArgumentError(f"length is {self.length}; it must be 0 or more")
        elif self.last_entry_id != -1 or self.length != 0:
            raise ArgumentError(
                f"last_entry_id is {self.last_entry_id} and length {self.length} while the state is {LedgerState(self.state).name}; "
                "only a closed ledger has them (-1 and 0 otherwise)"
            )

    @property
    def is_closed(self) -> bool:
        return self.state is LedgerState.CLOSED

    @property
    def last_segment(self) -> EnsembleSegment:
        """The one that is being written; it may begin after `last_entry_id`."""
        return self.segments[-1]

    def segment_of(self, entry_id: int) -> EnsembleSegment:
        """The segment with the greatest first entry that is not after `entry_id`.

        Raises:
            ArgumentError: the entry lies before the first segment.
        """
        index = bisect_right(self.segments, entry_id, key=_first_entry_id) - 1
        if index < 0:
            raise ArgumentError(f"entry {entry_id} lies before the first segment, which begins at {self.segments[0].first_entry_id}")
        return self.segments[index]

    def ensemble_of(self, entry_id: int) -> tuple[str, ...]:
        """The bookies of `segment_of`, by position."""
        return self.segment_of(entry_id).ensemble

    def with_ensemble(self, first_entry_id: int, ensemble: Sequence[str]) -> LedgerMetadata:
        """From `first_entry_id` on, entries are on `ensemble`.

        The last segment is replaced where it begins at exactly that entry, otherwise a new one follows it.

        Raises:
            ArgumentError: the entry lies before the last segment, or the ensemble has another size.
        """
        last = self.last_segment
        if first_entry_id < last.first_entry_id:
            raise ArgumentError(f"a segment at entry {first_entry_id} would begin before the last one, at {last.first_entry_id}")
        if first_entry_id == last.first_entry_id:
            return replace(self, segments=(*self.segments[:-1], replace(last, ensemble=tuple(ensemble))))
        return replace(self, segments=(*self.segments, EnsembleSegment(first_entry_id, tuple(ensemble))))

    def recovering(self) -> LedgerMetadata:
        """In recovery: no writer but a recovering client adds to it.

        Raises:
            ArgumentError: the ledger is closed.
        """
        if self.is_closed:
            raise ArgumentError("a closed ledger needs no recovery; read it as it is")
        return replace(self, state=LedgerState.IN_RECOVERY)

    def closed(self, last_entry_id: int, length: int) -> LedgerMetadata:
        """Of fixed end: `last_entry_id` (-1: empty) and `length` payload bytes.

        Raises:
            ArgumentError: the ledger is closed at another end already.
        """
        if self.is_closed and (self.last_entry_id, self.length) != (last_entry_id, length):
            raise ArgumentError(
                f"the ledger is closed at entry {self.last_entry_id} with {self.length} bytes; "
                f"it cannot be closed at {last_entry_id} with {length}"
            )
        return replace(self, state=LedgerState.CLOSED, last_entry_id=last_entry_id, length=length)


def _first_entry_id(segment: EnsembleSegment) -> int:
    return segment.first_entry_id
