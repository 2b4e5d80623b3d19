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
    """An append of a producer succeeded. `offset` is -1 if the log does not remember it; `is_duplicate`: the log had the record before."""

    time_s: float
    log: str
    producer: str
    sequence: int
    offset: int
    is_duplicate: bool
