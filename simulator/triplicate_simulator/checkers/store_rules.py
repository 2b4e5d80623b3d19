"""The rules for what clients of a key-value store see, and for its copies at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triplicate_simulator.checkers.history import Checker, History, Verdict
from triplicate_simulator.checkers.linearizability import registers_are_linearizable

SHOWN = 3
"""Differences named in one violation."""


@dataclass(frozen=True, slots=True)
class StoreWritten:
    """A change of a watched key was acknowledged."""

    time_s: float
    key: str
    value: str
    position: int


@dataclass(frozen=True, slots=True)
class SessionRead:
    """A copy answered a read at the position of an acknowledged write of the key."""

    time_s: float
    node: str
    key: str
    position: int
    """Position of the write. No other change made the version of the key smaller since."""
    version: int
    """Version of the key in the answer; 0 if it was absent."""
    answered_position: int


@dataclass(frozen=True, slots=True)
class ExpiringRead:
    """A linearizable read of a key that was stored once, with a deadline."""

    began_s: float
    ended_s: float
    key: str
    is_present: bool


@dataclass(frozen=True, slots=True)
class WatchBegan:
    """A watcher watches from a position on."""

    watcher: str
    position: int


@dataclass(frozen=True, slots=True)
class WatchedChange:
    """A watcher was shown a change."""

    watcher: str
    position: int
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """A watcher has seen all changes before a position."""

    watcher: str
    position: int


@dataclass(frozen=True, slots=True)
class StoreDiverged:
    """A node found its copy to be wrong."""

    time_s: float
    node: str
    reason: str


@dataclass(frozen=True)
class FinalStore:
    """The contents of one node's copy at the end, when every node has reached the end of the log."""

    node: str
    state: tuple[Any, ...]
    """Position, number of the last entry, time, and number of keys."""
    items: Sequence[tuple[str, str, int, int]]
    """Key, value, version and deadline of each stored key, in order."""
    deadlines: Sequence[tuple[int, str]]
    """The index of deadlines."""


def stores_are_equal(history: History, verdict: Verdict) -> None:
    """At the end all copies hold the same keys, versions, deadlines and time, and count and index them rightly. None was found wrong."""
    for event in history.of(StoreDiverged):
        verdict.violations.append(f"the copy of {event.node} was found wrong at {event.time_s:.6f}: {event.reason}")
    copies = list(history.of(FinalStore))
    for copy in copies:
        verdict.decided += 1
        if copy.state[-1] != len(copy.items):
            verdict.violations.append(f"{copy.node} counts {copy.state[-1]} keys and has {len(copy.items)}")
        indexed = sorted((deadline, key) for key, _, _, deadline in copy.items if deadline)
        if indexed != sorted(copy.deadlines):
            verdict.violations.append(f"{copy.node} has {len(indexed)} deadlines and indexes {len(copy.deadlines)}")
        if copy.state != copies[0].state:
            verdict.violations.append(f"{copies[0].node} ends at {copies[0].state}, {copy.node} at {copy.state}")
        if copy.items != copies[0].items:
            other = [item for item in copy.items if item not in copies[0].items][:SHOWN]
            missing = [item for item in copies[0].items if item not in copy.items][:SHOWN]
            verdict.violations.append(f"only {copies[0].node} has {missing}, only {copy.node} has {other}")


def store_sessions_read_their_writes(history: History, verdict: Verdict) -> None:
    """A read at the position of a write shows this write or a later one, and its own position is not before it."""
    for event in history.of(SessionRead):
        verdict.decided += 1
        if event.version < event.position or event.answered_position < event.position:
            verdict.violations.append(
                f"{event.node} was read at {event.position}, where {event.key} was written, at {event.time_s:.6f}; it answered from "
                f"{event.answered_position}, version {event.version}"
            )


def expired_keys_stay_expired(history: History, verdict: Verdict) -> None:
    """After a linearizable read has found that a key is expired, none that begins later finds the key."""
    first_absent_s: dict[str, float] = {}
    for event in sorted(history.of(ExpiringRead), key=lambda event: event.ended_s):
        if not event.is_present:
            first_absent_s.setdefault(event.key, event.ended_s)
    for event in history.of(ExpiringRead):
        if event.is_present:
            verdict.decided += 1
            absent_s = first_absent_s.get(event.key)
            if absent_s is not None and event.began_s > absent_s:
                verdict.violations.append(f"{event.key} was expired at {absent_s:.6f}, and was read from {event.began_s:.6f} on")


def watchers_miss_nothing(history: History, verdict: Verdict) -> None:
    """A watcher sees each acknowledged change of its part of the log once, with its value, in the order of the positions."""
    begins = {event.watcher: event.position for event in history.of(WatchBegan)}
    ends = {event.watcher: event.position for event in history.of(WatchEnded)}
    seen: dict[str, dict[int, tuple[str, str]]] = {watcher: {} for watcher in begins}
    last: dict[str, int] = {}
    for event in history.of(WatchedChange):
        verdict.decided += 1
        if event.position <= last.get(event.watcher, 0):
            verdict.violations.append(f"{event.watcher} was shown position {event.position} after {last[event.watcher]}")
        last[event.watcher] = event.position
        seen[event.watcher][event.position] = event.key, event.value
    for written in history.of(StoreWritten):
        for watcher, begin in begins.items():
            if begin < written.position <= ends.get(watcher, 0):
                verdict.decided += 1
                shown = seen[watcher].get(written.position)
                if shown != (written.key, written.value):
                    verdict.violations.append(
                        f"{watcher} was shown {shown} at position {written.position}, where {written.key} became {written.value}"
                    )


STORE_CHECKERS: dict[str, Checker] = {
    check.__name__: check
    for check in (
        registers_are_linearizable,
        stores_are_equal,
        store_sessions_read_their_writes,
        expired_keys_stay_expired,
        watchers_miss_nothing,
    )
}
