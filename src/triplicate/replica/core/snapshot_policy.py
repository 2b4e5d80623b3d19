"""Decides when a snapshot is due, which node makes it, and when loading one is better than reading the log. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

LONGEST_CHECK_S = 30.0
"""The longest interval between two checks whether a snapshot is due."""
SHORTEST_CHECK_S = 0.05
REQUEST_CHECK_S = 0.25
"""The interval while a request is open. Only a check shows a node that its copy has reached the requested offset."""

SHORT_REPLAY_BYTES = 1024 * 1024
"""A part of the log that is shorter than this is always read, and no snapshot is loaded for it."""


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """Times and rates at which snapshots are made.

    Args:
        log_bytes: a snapshot is due if the log has grown by this much since the newest one; 0: only on request.
        interval_s: the least age of the newest snapshot for another one to be due.
        rate_bytes_per_s: the rate limit of copying, sending and reading; 0 for none.
        keep_log_s: records younger than this are never truncated.
        turn_s: time that a node leaves a due snapshot to each node with a lower rank.
    """

    log_bytes: int = 0
    interval_s: float = 600.0
    rate_bytes_per_s: int = 0
    keep_log_s: float = 0.0
    turn_s: float = 60.0

    def check_s(self, *, requested: bool = False) -> float:
        """The interval between two checks, seconds.

        Args:
            requested: whether a request is open.
        """
        return min(max(self.interval_s / 10, SHORTEST_CHECK_S), REQUEST_CHECK_S if requested else LONGEST_CHECK_S)


@dataclass(frozen=True, slots=True)
class SnapshotSituation:
    """The state in which a node decides whether a snapshot is due.

    Args:
        position: of the node's copy.
        first_offset: of the log.
        now_ms: wall time.
        wanted: a snapshot at this offset or beyond is requested; None without a request.
        newest_position, newest_time_ms: of the newest good snapshot; None and 0 if none is listed.
        has_damaged: a damaged snapshot is listed.
    """

    position: int
    first_offset: int
    now_ms: int
    wanted: int | None
    newest_position: int | None
    newest_time_ms: int
    has_damaged: bool


def pressing_reason(situation: SnapshotSituation, settings: SnapshotSettings) -> str | None:
    """Why a snapshot is due regardless of the log's growth, or None."""
    if situation.wanted is not None and situation.position >= situation.wanted:
        return "requested"
    if settings.log_bytes <= 0:
        return None
    if situation.has_damaged:
        return "a snapshot is damaged"
    if situation.newest_position is None and situation.first_offset > 0:
        return "the log is truncated and no snapshot is listed"
    return None


def may_grow_due(situation: SnapshotSituation, settings: SnapshotSettings) -> bool:
    """Whether the log's growth since the newest good snapshot could make another one due, so that it has to be measured."""
    if settings.log_bytes <= 0:
        return False
    if situation.newest_position is None:
        return situation.position > 0
    age_s = (situation.now_ms - situation.newest_time_ms) / 1000
    # A clock that is ahead has made a snapshot with a future time. It must not prevent all others.
    return situation.position > situation.newest_position and not 0 <= age_s < settings.interval_s


def has_grown_due(grown_bytes: int, settings: SnapshotSettings) -> bool:
    """Whether the log has grown enough for another snapshot."""
    return grown_bytes >= settings.log_bytes > 0


@dataclass(frozen=True, slots=True)
class SnapshotPeer:
    """A node that holds a copy, as it reports itself."""

    node_id: str
    position: int


def snapshot_rank(node_id: str, position: int, members: Sequence[SnapshotPeer], leader: str | None, base: int) -> int | None:
    """The rank from 0 of a node in the order in which nodes make a snapshot; None if its copy is too far behind.

    Followers come first, by name, and the leader last. The leader makes snapshots only if it is alone or all others fail.

    Args:
        members: the nodes whose copies are served. leader: the leader's node id, or None.
        base: position of the newest good snapshot, 0 without one. A new snapshot must cover most of the log since then.
    """
    if node_id == leader:
        # Reported positions are slightly old, so the leader counts followers that seem to be behind.
        return len({member.node_id for member in members} - {node_id})
    farthest = max([position, *(member.position for member in members)])
    least = farthest - max(farthest - base, 0) // 4
    if position < least:
        return None
    before = {member.node_id for member in members if member.position >= least and member.node_id < node_id}
    return len(before - {leader})


def is_turn(rank: int | None, waited_s: float, turn_s: float) -> bool:
    """Whether a node with this rank makes the snapshot now, which has been due for `waited_s` by its own clock."""
    return rank is not None and waited_s >= rank * turn_s


def is_snapshot_faster(position: int, first_offset: int, replay_bytes: int, stored_bytes: int) -> bool:
    """Whether a copy at `position` loads a snapshot of a later position, and does not read the log up to there.

    Args:
        first_offset: of the log. replay_bytes: of the log between the two positions. stored_bytes: of the snapshot.
    """
    # Applying a byte of the log takes many times as long as copying a byte of a snapshot, so half its size is a conservative limit.
    return position < first_offset or replay_bytes > max(stored_bytes // 2, SHORT_REPLAY_BYTES)


class SegmentAge(NamedTuple):
    """The first offset of a segment, and the latest wall time in it, in µs since the epoch; None while it is being written."""

    first_offset: int
    latest_us: int | None


def cut_offset(snapshot_offset: int, segments: Sequence[SegmentAge], keep_log_s: float, now_us: int) -> int:
    """The offset at which the log is truncated: that of the snapshot, or of the first segment with records that must be kept.

    Args:
        segments: all segments of the log, oldest first. keep_log_s: age up to which records are kept. now_us: wall time.
    """
    if keep_log_s <= 0:
        return snapshot_offset
    since_us = now_us - int(keep_log_s * 1e6)
    young = (segment.first_offset for segment in segments if segment.latest_us is None or segment.latest_us >= since_us)
    return min(snapshot_offset, next(young, snapshot_offset))
