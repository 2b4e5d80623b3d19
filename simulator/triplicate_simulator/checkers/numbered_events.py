"""Events of producers that number their records."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumberedSubmitted:
    """A producer's record was passed to a writer, perhaps again. A producer and a sequence number always stand for the same record."""

    time_s: float
    log: str
    producer: str
    sequence: int
    record: bytes


@dataclass(frozen=True, slots=True)
class NumberedAcknowledged:
    """An append of a producer succeeded, with a writer of an epoch. `offset` is -1 if the log does not remember it; `is_duplicate`: the
    log had the record before."""

    time_s: float
    log: str
    producer: str
    sequence: int
    epoch: int
    offset: int
    is_duplicate: bool


@dataclass(frozen=True, slots=True)
class NumberedRefused:
    """A writer of an epoch refused a producer's record, since another number came next."""

    time_s: float
    log: str
    producer: str
    sequence: int
    epoch: int
