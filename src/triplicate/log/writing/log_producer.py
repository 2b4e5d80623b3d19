"""Producers that number their records: one that is appended again, after an unknown outcome, a crash or a take-over, is there once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from triplicate.errors import ArgumentError
from triplicate.log.core.payload import Buffer, Producer, RecordHeaders, encode_record_headers
from triplicate.log.core.payload_encoder import check_timestamp, checked_cost
from triplicate.log.core.producer_table import OpenedEpoch, Repeated, check_sequence, producer_id
from triplicate.log.writing.entry_builder import EntryBuilder, Producers

AT_ONCE = 1000
"""Records of `LogProducer.append_many` that are on their way together."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append of a producer.

    Args:
        offset: of the record; None: it is a duplicate, and no offset of its number is remembered.
        is_duplicate: nothing was appended: the number is at or below the producer's highest, whether or not a record of it was stored.
    """

    sequence: int
    offset: int | None
    is_duplicate: bool = False


class NumberingWriter(Protocol):
    """The part of a log's writer that its producers use."""

    @property
    def producers(self) -> Producers: ...

    async def append_numbered(self, record: NumberedRecord) -> Appended: ...

    async def close(self) -> None: ...

    async def abandon(self) -> None: ...


class LogProducer:
    """Made by `LogWriter.producer`, which it appends with, or by `Logs.producer`, whose writer ends with it.

    Every record has a sequence number, one more than the record before. The log compares it with the last one that it has of this producer:
    the next is appended, one that is not greater is a repetition and is not, and a gap is refused. So a program that does not know whether
    an append succeeded appends the same record under the same number again, with a new writer if the old one has ended.
    """

    def __init__(self, writer: NumberingWriter, name: str, epoch: int) -> None:
        self.name = name
        self.id = producer_id(name)
        """The producer in the headers of entries."""
        self.epoch = epoch
        self._writer = writer
        self._owns_writer = False
        self._opened: OpenedEpoch | None = None

    def open(self) -> LogProducer:
        """Fence the older instances that append with the same writer. Raises ProducerFenced: this one is old; ArgumentError: no epoch."""
        self._opened = self._writer.producers.open(self.name, self.id, self.epoch)
        return self

    def owning(self) -> LogProducer:
        """The same producer, which ends its writer when it ends."""
        self._owns_writer = True
        return self

    @property
    def last_sequence(self) -> int | None:
        """The last sequence number that was accepted; None: the log does not know the producer, and its first number may be any."""
        return self._writer.producers.last_sequence(self.id)

    async def append(
        self,
        value: Buffer | None,
        *,
        sequence: int | None = None,
        key: Buffer | None = None,
        timestamp_us: int | None = None,
        headers: RecordHeaders | None = None,
    ) -> Appended:
        """Append one record, unless its number is a duplicate. Returns once it is acknowledged.

        Args:
            sequence: its number; None: the next one, for a program that repeats nothing.

        Raises:
            SequenceGap: another number comes next. ProducerFenced: a newer instance has appended. TooManyProducers. Also as
            `LogWriter.append`.
        """
        return await self._writer.append_numbered(NumberedRecord(self, sequence, value, key, timestamp_us, headers))

    async def append_many(
        self,
        values: Sequence[Buffer | None],
        *,
        sequence: int | None = None,
        keys: Sequence[Buffer | None] | None = None,
    ) -> list[Appended]:
        """Append records in order, those that are no duplicates. Returns once all are acknowledged.

        Args:
            sequence: number of the first.

        Raises:
            As `append`; then a beginning of the records may have been appended. RecordTooLarge, ArgumentError: one of them cannot be
            appended, or the lists have different lengths; nothing was sent.
        """
        if keys is not None and len(keys) != len(values):
            raise ArgumentError(f"keys has {len(keys)} items for {len(values)} records")
        if sequence is not None:
            check_sequence(self.name, sequence)
        # All are checked before the first is sent: those behind a refused one would take its number.
        for place, value in enumerate(values):
            checked_cost(value, None if keys is None else keys[place], None)
        done: list[Appended] = []
        for start in range(0, len(values), AT_ONCE):
            part = range(start, min(start + AT_ONCE, len(values)))
            done += await asyncio.gather(
                *(
                    self.append(
                        values[place], key=None if keys is None else keys[place], sequence=None if sequence is None else sequence + place
                    )
                    for place in part
                )
            )
        return done

    async def close(self) -> None:
        """Close the writer that was opened for this producer. Idempotent."""
        if self._owns_writer:
            await self._writer.close()

    async def __aenter__(self) -> LogProducer:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            await self.close()
        elif self._owns_writer:
            await self._writer.abandon()


class NumberedRecord:
    """One record of a producer on its way to the writer."""

    __slots__ = ("_headers", "_key", "_producer", "_sequence", "_timestamp_us", "_value", "cost")

    def __init__(
        self,
        producer: LogProducer,
        sequence: int | None,
        value: Buffer | None,
        key: Buffer | None,
        timestamp_us: int | None,
        headers: RecordHeaders | None,
    ) -> None:
        self._producer = producer
        self._sequence = sequence
        self._value = value
        self._key = key
        self._timestamp_us = timestamp_us
        self._headers = None if headers is None else encode_record_headers(headers)
        self.cost = checked_cost(value, key, self._headers)
        """The bytes that it occupies in the window. Raises RecordTooLarge and ArgumentError when it is made."""
        if timestamp_us is not None:
            check_timestamp(timestamp_us)

    def check(self, producers: Producers, now_us: int) -> tuple[int, Repeated[asyncio.Future[range]] | None]:
        """Its sequence number, and what is known of an earlier append of it. Raises as `ProducerTable.check`."""
        producer, sequence = self._producer, self._sequence
        if sequence is None:
            last = producers.last_sequence(producer.id)
            sequence = 0 if last is None else last + 1
        return sequence, producers.check(producer.name, producer.id, producer.epoch, sequence, now_us)

    def fits(self, builder: EntryBuilder, target_bytes: int) -> bool:
        """Whether it may share the entry that a builder collects: records of one producer, up to a size."""
        found = builder.producer
        mine = self._producer
        return found is not None and (found.id, found.epoch) == (mine.id, mine.epoch) and builder.size_bytes + self.cost <= target_bytes

    def new_builder(self, sequence: int) -> EntryBuilder:
        """A builder for an entry that begins with this record."""
        return EntryBuilder(0, Producer(self._producer.id, self._producer.epoch, sequence))

    def add_to(self, builder: EntryBuilder, producers: Producers, sequence: int, now_us: int) -> int:
        """Add it to an entry, and let the table of producers count it. Returns its slot."""
        producers.accept(self._producer.id, self._producer.epoch, sequence, now_us, builder.future)
        return builder.add(self._value, self._key, self._timestamp_us, self._headers, self.cost)


async def repeated_append(repeated: Repeated[asyncio.Future[range]]) -> Appended:
    """The result of an append that repeats another: it waits until that one is acknowledged. Raises what ended it."""
    batch = repeated.batch
    if batch is None:
        return Appended(repeated.sequence, None, is_duplicate=True)
    offsets = batch.offsets if isinstance(batch.offsets, range) else await asyncio.shield(batch.offsets)
    return Appended(repeated.sequence, offsets[repeated.sequence - batch.first], is_duplicate=True)
