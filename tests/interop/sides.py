"""The two implementations of a client behind one interface, so that a test of the matrix is written once.

`OurSide` is Triplicate's client, `JavaSide` BookKeeper's. A refusal of either is raised as `Refused` with one of the kinds below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from tests.interop import driver as java
from tests.interop.bookies import Cluster
from tests.interop.driver import JavaClient, JavaError, JavaLedger, LedgerFacts, SeenEntry, payload
from tests.interop.stand import OURS, Stand
from triplicate import DigestType, LedgerReader, LedgerWriter
from triplicate.errors import (
    DigestMismatch,
    HandleClosed,
    LedgerClosed,
    LedgerFenced,
    NoSuchEntry,
    NoSuchLedger,
    ReadFailed,
    TriplicateError,
    Unauthorized,
)

NO_LEDGER = "no such ledger"
NO_ENTRY = "no such entry"
CLOSED = "closed"
FENCED = "fenced"
UNAUTHORIZED = "unauthorized"
DIGEST = "digest"
NOT_SUPPORTED = "not supported"
OTHER = "other"

_CODES = {
    java.NO_SUCH_LEDGER: NO_LEDGER,
    java.NO_SUCH_LEDGER_ON_BOOKIE: NO_LEDGER,
    java.NO_SUCH_ENTRY: NO_ENTRY,
    # BookKeeper's error for a range that ends behind the last confirmed entry.
    java.READ_FAILED: NO_ENTRY,
    java.LEDGER_CLOSED: CLOSED,
    java.FENCED: FENCED,
    java.UNAUTHORIZED: UNAUTHORIZED,
    java.DIGEST_MISMATCH: DIGEST,
    java.ILLEGAL_OPERATION: NOT_SUPPORTED,
}
_ERRORS: tuple[tuple[type[TriplicateError], str], ...] = (
    (NoSuchLedger, NO_LEDGER),
    (NoSuchEntry, NO_ENTRY),
    (LedgerClosed, CLOSED),
    (HandleClosed, CLOSED),
    (LedgerFenced, FENCED),
    (Unauthorized, UNAUTHORIZED),
    (DigestMismatch, DIGEST),
    (ReadFailed, DIGEST),
)


class Refused(Exception):
    """A client refused, or failed; `kind` is one of this module's."""

    def __init__(self, kind: str, why: Exception) -> None:
        super().__init__(f"{kind}: {why}")
        self.kind = kind


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except JavaError as error:
        # Exceptions of BookKeeper's client for an operation that a wire or a release lacks.
        kind = NOT_SUPPORTED if error.name == "UnsupportedOperationException" else _CODES.get(error.code, OTHER)
        raise Refused(kind, error) from error
    except TriplicateError as error:
        raise Refused(next((kind for known, kind in _ERRORS if isinstance(error, known)), OTHER), error) from error


class Writing(Protocol):
    """A ledger open for writing."""

    ledger_id: int

    def append(self, value: bytes) -> int: ...

    def append_many(self, count: int, *, first: int, size: int, seed: int) -> list[int]:
        """Append ``payload(seed, first + i, size)`` for each i below `count`, all in flight at once; return the ids in that order."""

    def force(self) -> None: ...

    def last_add_confirmed(self) -> int: ...

    def close(self) -> None: ...


class Reading(Protocol):
    """A ledger open for reading."""

    ledger_id: int

    def read(self, first: int, last: int) -> list[SeenEntry]: ...

    def read_batch(self, first: int, max_count: int, max_bytes: int) -> list[SeenEntry]: ...

    def last_add_confirmed(self) -> int: ...

    def is_closed(self) -> bool: ...

    def close(self) -> None: ...


class Side(Protocol):
    """A client of one cluster over one wire."""

    name: str
    batch_reads: bool
    """Whether the client has batch reads."""

    def create(
        self,
        *,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        digest_type: DigestType,
        password: bytes,
        custom: Mapping[str, bytes] | None = None,
    ) -> Writing: ...

    def open(self, ledger_id: int, *, digest_type: DigestType, password: bytes, recovery: bool = False) -> Reading: ...

    def delete(self, ledger_id: int) -> None: ...

    def ledger_ids(self) -> list[int]:
        """Ascending."""

    def metadata_of(self, ledger_id: int) -> LedgerFacts: ...


class JavaWriting:
    def __init__(self, ledger: JavaLedger) -> None:
        self._ledger = ledger
        self.ledger_id = ledger.ledger_id

    def append(self, value: bytes) -> int:
        with translated():
            return self._ledger.append(value)

    def append_many(self, count: int, *, first: int, size: int, seed: int) -> list[int]:
        with translated():
            return self._ledger.append_many(count, first=first, size=size, seed=seed).acknowledged()

    def force(self) -> None:
        with translated():
            self._ledger.force()

    def last_add_confirmed(self) -> int:
        return self._ledger.state().last_add_confirmed

    def close(self) -> None:
        with translated():
            self._ledger.close()


class JavaReading:
    def __init__(self, ledger: JavaLedger) -> None:
        self._ledger = ledger
        self.ledger_id = ledger.ledger_id

    def read(self, first: int, last: int) -> list[SeenEntry]:
        with translated():
            return self._ledger.read(first, last)

    def read_batch(self, first: int, max_count: int, max_bytes: int) -> list[SeenEntry]:
        with translated():
            return self._ledger.read_batch(first, max_count, max_bytes)

    def last_add_confirmed(self) -> int:
        return self._ledger.state().last_add_confirmed

    def is_closed(self) -> bool:
        return self._ledger.state().closed

    def close(self) -> None:
        self._ledger.close()


class JavaSide:
    """BookKeeper's Java client of one release."""

    def __init__(self, stand: Stand, release: str, cluster: Cluster, wire: str) -> None:
        self.name = f"java-{release}"
        self.client: JavaClient = stand.java_client(release, cluster, wire)
        self.batch_reads = self.client.driver.batch_reads

    def create(
        self,
        *,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        digest_type: DigestType,
        password: bytes,
        custom: Mapping[str, bytes] | None = None,
    ) -> JavaWriting:
        with translated():
            return JavaWriting(
                self.client.create(
                    ensemble_size=ensemble_size,
                    write_quorum=write_quorum,
                    ack_quorum=ack_quorum,
                    digest_type=digest_type,
                    password=password,
                    custom=custom,
                )
            )

    def open(self, ledger_id: int, *, digest_type: DigestType, password: bytes, recovery: bool = False) -> JavaReading:
        with translated():
            return JavaReading(self.client.open(ledger_id, digest_type=digest_type, password=password, recovery=recovery))

    def delete(self, ledger_id: int) -> None:
        with translated():
            self.client.delete(ledger_id)

    def ledger_ids(self) -> list[int]:
        with translated():
            return sorted(self.client.ledger_ids())

    def metadata_of(self, ledger_id: int) -> LedgerFacts:
        with translated():
            return self.client.metadata_of(ledger_id)


class OurWriting:
    def __init__(self, stand: Stand, writer: LedgerWriter) -> None:
        self._stand = stand
        self._writer = writer
        self.ledger_id = writer.ledger_id

    def append(self, value: bytes) -> int:
        with translated():
            return self._stand.run(self._writer.append(value))

    def append_many(self, count: int, *, first: int, size: int, seed: int) -> list[int]:
        async def append() -> list[int]:
            futures = [self._writer.append_nowait(payload(seed, first + index, size)) for index in range(count)]
            return [await future for future in futures]

        with translated():
            return self._stand.run(append())

    def force(self) -> None:
        with translated():
            self._stand.run(self._writer.force())

    def last_add_confirmed(self) -> int:
        return self._writer.last_add_confirmed

    def close(self) -> None:
        with translated():
            self._stand.run(self._writer.close())


class OurReading:
    def __init__(self, stand: Stand, reader: LedgerReader) -> None:
        self._stand = stand
        self._reader = reader
        self.ledger_id = reader.ledger_id

    def read(self, first: int, last: int) -> list[SeenEntry]:
        with translated():
            return [SeenEntry(one.entry_id, one.length, bytes(one.payload)) for one in self._stand.run(self._reader.read(first, last))]

    def read_batch(self, first: int, max_count: int, max_bytes: int) -> list[SeenEntry]:
        with translated():
            found = self._stand.run(self._reader.read_batch(first, max_count, max_bytes))
            return [SeenEntry(one.entry_id, one.length, bytes(one.payload)) for one in found]

    def last_add_confirmed(self) -> int:
        return self._reader.last_add_confirmed

    def is_closed(self) -> bool:
        return self._reader.is_closed

    def close(self) -> None:
        self._stand.run(self._reader.aclose())


class OurSide:
    """Triplicate's client."""

    name = OURS
    batch_reads = True

    def __init__(self, stand: Stand, cluster: Cluster, wire: str) -> None:
        self._stand = stand
        self.client = stand.our_client(cluster, wire)

    def create(
        self,
        *,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        digest_type: DigestType,
        password: bytes,
        custom: Mapping[str, bytes] | None = None,
    ) -> OurWriting:
        creating = self.client.create(
            ensemble_size=ensemble_size,
            write_quorum=write_quorum,
            ack_quorum=ack_quorum,
            digest_type=digest_type,
            password=password,
            custom=custom or {},
        )
        with translated():
            return OurWriting(self._stand, self._stand.run(creating))

    def open(self, ledger_id: int, *, digest_type: DigestType, password: bytes, recovery: bool = False) -> OurReading:
        del digest_type  # Our client reads the type from the metadata.
        opening = self.client.recover(ledger_id, password=password) if recovery else self.client.open(ledger_id, password=password)
        with translated():
            return OurReading(self._stand, self._stand.run(opening))

    def delete(self, ledger_id: int) -> None:
        with translated():
            self._stand.run(self.client.delete(ledger_id))

    def ledger_ids(self) -> list[int]:
        async def listed() -> list[int]:
            return [ledger_id async for ledger_id in self.client.ledger_ids()]

        with translated():
            return self._stand.run(listed())

    def metadata_of(self, ledger_id: int) -> LedgerFacts:
        with translated():
            found = self._stand.run(self.client.metadata_of(ledger_id))
        return LedgerFacts(
            ensemble_size=found.ensemble_size,
            write_quorum=found.write_quorum,
            ack_quorum=found.ack_quorum,
            state=found.state,
            last_entry_id=found.last_entry_id,
            length=found.length,
            digest_type=found.digest_type,
            password=found.password,
            custom=dict(found.custom),
            segments={segment.first_entry_id: segment.ensemble for segment in found.segments},
            ctime_ms=found.ctime_ms or -1,
            format_version=found.format_version,
        )


def side(stand: Stand, name: str, cluster: Cluster, wire: str) -> Side:
    """The client called `name`: ``triplicate`` or ``java-RELEASE``."""
    return OurSide(stand, cluster, wire) if name == OURS else JavaSide(stand, name.removeprefix("java-"), cluster, wire)
