"""The interfaces to ledgers that logs use, as protocols. `triplicate.client.Client` implements them, and so does a fake in tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Protocol

from triplicate.ledger import DigestType, Entry, LedgerMetadata
from triplicate.metadata import BookieServiceInfo, TrashedLedger, Tree, TreeOperation, Versioned
from triplicate.runtime import Host, Metrics


class LedgerAppender(Protocol):
    """An open ledger and its one writer."""

    @property
    def ledger_id(self) -> int: ...

    @property
    def has_missed_bookies(self) -> bool:
        """Whether it ever continued without a bookie of its ensemble, so that some entries may have fewer copies than the write quorum."""

    @property
    def has_all_copies(self) -> bool:
        """Whether every bookie has acknowledged every entry that it should have."""

    async def append(self, payload: bytes, /) -> int: ...

    def append_nowait(self, payload: bytes, /) -> asyncio.Future[int]: ...

    async def close(self) -> int: ...

    def abandon(self) -> None: ...


class LedgerTail(Protocol):
    """Entries as they become readable."""

    async def next_entries(self, limit: int = ...) -> Sequence[Entry]:
        """Return all available entries; waits for the first. Empty at the end of the ledger. Cancelling loses nothing."""

    async def aclose(self) -> None: ...


class LedgerView(Protocol):
    """A ledger opened for reading. `last_add_confirmed` is at least its value at the opening."""

    @property
    def ledger_id(self) -> int: ...

    @property
    def metadata(self) -> LedgerMetadata: ...

    @property
    def last_add_confirmed(self) -> int: ...

    @property
    def is_closed(self) -> bool: ...

    @property
    def missing_bookies(self) -> Sequence[str]:
        """Bookies of its last ensemble that did not accept copies of its last entries during recovery."""

    async def read(self, first: int, last: int, /) -> Sequence[Entry]: ...

    async def read_last_confirmed(self) -> int: ...

    async def read_last_written(self) -> Entry | None:
        """The last entry, confirmed or not. No entry behind it was acknowledged before this call."""

    def tail(self, first_entry_id: int = 0) -> LedgerTail: ...

    async def aclose(self) -> None: ...


class LedgerNodes(Protocol):
    """The metadata of ledgers, as nodes that changes of logs depend on."""

    def node_path(self, ledger_id: int, /) -> str: ...

    async def get(self, ledger_id: int, /) -> Versioned:
        """Raises NoSuchLedger, FormatError."""


class TrashView(Protocol):
    """Deleted ledgers that can still be restored."""

    async def get(self, ledger_id: int, /) -> TrashedLedger | None: ...


class Bookies(Protocol):
    """The bookies of the cluster."""

    async def writable(self) -> Mapping[str, BookieServiceInfo]:
        """The registrations of the bookies that accept new ledgers, by id."""

    async def read_only_note(self) -> str:
        """The end of a sentence about too few writable bookies, which names those that only read; empty if there are none."""


class Cluster(Protocol):
    """The metadata of a cluster."""

    @property
    def ledgers(self) -> LedgerNodes: ...

    @property
    def trash(self) -> TrashView: ...

    @property
    def bookies(self) -> Bookies: ...

    @property
    def tree(self) -> Tree: ...

    @property
    def own_root(self) -> str: ...


class LedgerClient(Protocol):
    """Creates, opens, recovers and deletes ledgers."""

    @property
    def host(self) -> Host: ...

    @property
    def metadata(self) -> Cluster: ...

    @property
    def metrics(self) -> Metrics | None: ...

    @property
    def min_ack_domains(self) -> int:
        """Least number of fault domains in which an entry is acknowledged; 1: any ack quorum."""

    @property
    def add_timeout_s(self) -> float:
        """A bookie that has not answered an add within this time has failed, in seconds."""

    async def create(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum: int = 3,
        ack_quorum: int = 2,
        digest_type: DigestType = DigestType.CRC32C,
        password: bytes = b"",
        custom: Mapping[str, bytes] = ...,
    ) -> LedgerAppender: ...

    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerView: ...

    async def recover(self, ledger_id: int, *, password: bytes = b"") -> LedgerView: ...

    async def delete(self, ledger_id: int, *, version: int | None = ..., checks: Sequence[TreeOperation] = ...) -> None:
        """Delete a ledger at a version of its metadata node, together with checks. Raises BadVersion if one of them fails."""

    async def bookies_answer(self, ledger_id: int, bookie_ids: Sequence[str], suffices: Callable[[Collection[str]], bool], /) -> bool:
        """Whether those of the bookies that answer suffice. Nothing is fenced."""

    def ledger_ids(self) -> AsyncIterator[int]: ...

    async def metadata_of(self, ledger_id: int) -> LedgerMetadata: ...
