"""The producers of a log and their last sequence numbers: what is appended, what is a repetition, and what a log's node keeps of them.

A producer numbers its records without gaps, beginning anywhere. A record is accepted once: its number must follow the last one accepted.
`accepted` runs ahead of `durable`, which counts acknowledged records only. The entries between the two are remembered, so that
a repetition waits for the first append. The node holds what is durable: a writer that ends with accepted records on their way leaves
their fate to recovery, and the next one reads it off the segment.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from triplicate.errors import ArgumentError, CorruptionError, ProducerFenced, SequenceGap, TooManyProducers
from triplicate.log.core.head import check_text, dump_node, load_node
from triplicate.log.core.payload import Producer

Waiter = TypeVar("Waiter")

PRODUCERS_VERSION = 1
PRODUCERS_LIMIT = 500
"""Producers that a log remembers, so that their node has at most 64 KiB."""
RECENT_BATCHES = 5
"""Entries of one producer whose offsets a writer remembers, for repetitions; more while more are on their way."""
SEQUENCE_LIMIT = 2**64


def producer_id(name: str) -> bytes:
    """The 16 bytes that stand for a producer's name in entries: the beginning of its SHA-256.

    Raises:
        ArgumentError: it is empty, or longer than 256 bytes.
    """
    if not name:
        raise ArgumentError("a producer needs a name")
    return hashlib.sha256(check_text("the producer's name", name).encode()).digest()[:16]


def check_sequence(name: str, sequence: int) -> None:
    """Raise ArgumentError for what is no sequence number."""
    if type(sequence) is not int or not 0 <= sequence < SEQUENCE_LIMIT:
        raise ArgumentError(f"producer {name!r} has sequence number {sequence!r}; it is an integer of 64 bits without sign")


@dataclass(frozen=True, slots=True)
class ProducerState:
    """The durable state of one producer.

    Args:
        sequence, offset: of its last record.
        time_us: wall time of the entry of that record.
    """

    id: bytes
    epoch: int
    sequence: int
    offset: int
    time_us: int


@dataclass(slots=True)
class Batch(Generic[Waiter]):
    """Consecutive records of one producer in one entry.

    Args:
        offsets: their offsets, or what becomes them.
    """

    first: int
    count: int
    offsets: range | Waiter


@dataclass(frozen=True, slots=True)
class Repeated(Generic[Waiter]):
    """The number is at or below the last one that was accepted.

    Args:
        batch: None: no record of this number is on its way, and no offset is remembered.
    """

    sequence: int
    batch: Batch[Waiter] | None


@dataclass(slots=True)
class _Known(Generic[Waiter]):
    epoch: int
    accepted: int
    time_us: int
    """When its last record was accepted, by the log's time."""
    durable: ProducerState | None = None
    recent: deque[Batch[Waiter]] = field(default_factory=deque)
    """The last batches, all that are on their way among them. The writer's window limits their number."""

    @property
    def is_settled(self) -> bool:
        """Whether all that was accepted is durable."""
        return self.durable is not None and self.durable.sequence == self.accepted

    def find(self, sequence: int) -> Batch[Waiter] | None:
        """The batch of a number that was accepted; None: none of it is on its way, and it is forgotten or never was."""
        place = bisect_right(self.recent, sequence, key=lambda batch: batch.first)
        return self.recent[place - 1] if place else None

    def settle(self, state: ProducerState) -> None:
        """Records up to a number are durable: forget the oldest batches of them."""
        self.durable = state
        while len(self.recent) > RECENT_BATCHES and self.recent[1].first <= state.sequence + 1:
            self.recent.popleft()


class OpenedEpoch:
    """The greatest epoch in which a producer was opened with one writer. All its instances hold it, and it goes with the last of them."""

    __slots__ = ("__weakref__", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch


class ProducerTable(Generic[Waiter]):
    """The producers that a log's writer knows.

    Args:
        log: for messages.
        saved: what was durable before this writer.
        idle_us: after this time without a record, by the log's time, a producer may be forgotten for another.
    """

    def __init__(self, log: str, saved: Iterable[ProducerState], idle_us: int, limit: int = PRODUCERS_LIMIT) -> None:
        self._log = log
        self._idle_us = idle_us
        self._limit = limit
        self._known: dict[bytes, _Known[Waiter]] = {}
        self._opened: WeakValueDictionary[bytes, OpenedEpoch] = WeakValueDictionary()
        for state in saved:
            known: _Known[Waiter] = _Known(state.epoch, state.sequence, state.time_us, state)
            known.recent.append(Batch(state.sequence, 1, range(state.offset, state.offset + 1)))
            self._known[state.id] = known

    def last_sequence(self, identity: bytes) -> int | None:
        """The last sequence number accepted of a producer; None: the log does not know it."""
        known = self._known.get(identity)
        return None if known is None else known.accepted

    def open(self, name: str, identity: bytes, epoch: int) -> OpenedEpoch:
        """Open an instance of a producer: from now on no older one appends, so that the last sequence number stays what it is for this one.

        Returns:
            What the instance holds as long as it is there.

        Raises:
            ProducerFenced, ArgumentError: see `check_epoch`.
        """
        self.check_epoch(name, identity, epoch)
        opened = self._opened.setdefault(identity, OpenedEpoch(epoch))
        opened.epoch = epoch
        return opened

    def check_epoch(self, name: str, identity: bytes, epoch: int) -> None:
        """Raise ProducerFenced if a newer instance of a producer was opened or has appended; ArgumentError for what is no epoch."""
        if type(epoch) is not int or not 0 <= epoch < 2**32:
            raise ArgumentError(f"producer {name!r} has epoch {epoch!r}; an epoch is an integer of 32 bits without sign")
        known, opened = self._known.get(identity), self._opened.get(identity)
        newest = max(0 if known is None else known.epoch, 0 if opened is None else opened.epoch)
        if epoch < newest:
            raise ProducerFenced(
                f"producer {name!r} of log {self._log!r} was opened in epoch {newest}: this instance, of epoch {epoch}, is old"
            )

    def check(self, name: str, identity: bytes, epoch: int, sequence: int, now_us: int) -> Repeated[Waiter] | None:
        """Check a record that is to be appended. None: it is the next one.

        Args:
            now_us: the log's time.

        Raises:
            SequenceGap, ProducerFenced, TooManyProducers, ArgumentError: nothing may be appended.
        """
        self.check_epoch(name, identity, epoch)
        check_sequence(name, sequence)
        known = self._known.get(identity)
        if known is None:
            self._make_room(name, now_us)
            return None
        if sequence <= known.accepted:
            return Repeated(sequence, known.find(sequence))
        if sequence != known.accepted + 1:
            raise SequenceGap(
                f"producer {name!r} of log {self._log!r}: sequence number {known.accepted + 1} comes next, {sequence} was given; "
                "nothing was appended"
            )
        return None

    def _make_room(self, name: str, now_us: int) -> None:
        """Forget the producer that has been idle for longest, if the table is full. One with records on their way is not idle."""
        if len(self._known) < self._limit:
            return
        settled = (identity for identity, known in self._known.items() if known.is_settled)
        idlest = min(settled, key=lambda identity: self._known[identity].time_us, default=None)
        if idlest is None or now_us - self._known[idlest].time_us < self._idle_us:
            raise TooManyProducers(
                f"log {self._log!r} remembers {self._limit} producers, all of which have appended within {self._idle_us / 1e6:g} s: "
                f"producer {name!r} is not admitted"
            )
        del self._known[idlest]

    def accept(self, identity: bytes, epoch: int, sequence: int, now_us: int, waiter: Waiter) -> None:
        """A record that was checked is appended, in the entry that has this waiter."""
        known = self._known.get(identity)
        if known is None:
            known = self._known[identity] = _Known(epoch, sequence, now_us)
        known.epoch, known.accepted, known.time_us = epoch, sequence, now_us
        if known.recent and known.recent[-1].offsets is waiter:
            known.recent[-1].count += 1
        else:
            known.recent.append(Batch(sequence, 1, waiter))

    def acknowledge(self, producer: Producer, count: int, first_offset: int, time_us: int) -> None:
        """An entry of a producer is durable."""
        state = ProducerState(producer.id, producer.epoch, producer.sequence + count - 1, first_offset + count - 1, time_us)
        known = self._known.get(producer.id)
        if known is not None:
            known.settle(state)

    def durable(self) -> list[ProducerState]:
        """The durable states, by id."""
        found = [known.durable for known in self._known.values() if known.durable is not None]
        return sorted(found, key=lambda state: state.id)


def merged(saved: Iterable[ProducerState], later: Iterable[ProducerState], limit: int = PRODUCERS_LIMIT) -> list[ProducerState]:
    """The durable states after further records, which are in the order in which they were written. Of more than the limit the oldest are
    forgotten."""
    found = {state.id: state for state in saved}
    for state in later:
        found[state.id] = state
    newest = sorted(found.values(), key=lambda state: (-state.time_us, state.id))[:limit]
    return sorted(newest, key=lambda state: state.id)


def encode_producers(states: Iterable[ProducerState], end_offset: int) -> bytes:
    """The node of a log's producers.

    Args:
        end_offset: records before it are counted: where the open segment begins.
    """
    rows = [[state.id.hex(), state.epoch, state.sequence, state.offset, state.time_us] for state in states]
    return dump_node({"end": end_offset, "producers": rows, "v": PRODUCERS_VERSION}, "the producers of a log")


def decode_producers(data: bytes, log: str) -> tuple[list[ProducerState], int]:
    """Read the node of a log's producers: the states, and the offset before which records are counted.

    Raises:
        FormatError: of a later release. CorruptionError: any other invalid content.
    """
    what = f"the producers of log {log!r}"
    value = load_node(data, what, PRODUCERS_VERSION)
    try:
        states = [ProducerState(bytes.fromhex(item[0]), *map(int, item[1:5])) for item in value["producers"]]
        return states, int(value["end"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CorruptionError(f"{what} lack a field or have a wrong one: {error!r}") from error
