"""The model of the ledger workload: the ledgers that exist, and how far each is written, acknowledged and closed.

The model belongs to the world, not to a node, and survives every crash. Actors use it to choose their actions and to check answers, never
to pass information to the code under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace

from triplicate.client import Client, LedgerReader, WriteHandle
from triplicate.errors import FormatError
from triplicate.ledger import DigestType, LedgerMetadata, LedgerState, decode_metadata, write_set
from triplicate.sim.host import WALL_SKEW_MAX_S, SimulatedHost
from triplicate_simulator.checkers.ledger_promises import Acknowledged, Confirmed, Deleted, Ended, MetadataWritten, Sent, Undeleted
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.ledger.ledger_load import LedgerLoad

PASSWORD = b"simulated"
CLOCKS_APART_S = 2 * WALL_SKEW_MAX_S + 1.0
"""Three nodes' wall clocks judge the trash period; an undelete this long before its end must restore every entry."""

STATES = {LedgerState.OPEN: "open", LedgerState.IN_RECOVERY: "in recovery", LedgerState.CLOSED: "closed"}


@dataclass
class KnownLedger:
    """One ledger."""

    ledger_id: int
    writer_name: str
    kind: str
    writer: WriteHandle
    host: SimulatedHost
    """The life of the writer's node."""
    made_s: float
    left: bool = False
    """Its writer has abandoned it, or lost it."""
    left_s: float | None = None
    """When it was first seen to have no writer."""
    ended: bool = False
    """An actor saw it closed."""
    acknowledged_to: int = -1
    confirmed_told: int = -1
    """Last-add-confirmed that its acknowledged entries carry. Every reader of a ledger written in order must know it at once."""
    due: dict[str, float] = field(default_factory=dict)
    """Times of its recoveries, by recoverer. Set at its creation for ledgers whose writer lives, otherwise when it was abandoned."""
    buried: bool = False
    deleted: bool = False
    """An actor has requested its deletion."""
    wanted_back: bool = False
    """An actor has requested its restoration."""

    @property
    def is_plain(self) -> bool:
        """Whether its entries are numbered and sent in order."""
        return "adv" not in self.kind

    @property
    def has_writer(self) -> bool:
        """Whether a writer may still append."""
        return not self.left and self.host.alive


class LedgerModel:
    """All ledgers of a run, in the order of their creation."""

    def __init__(self, stage: RunContext, load: LedgerLoad) -> None:
        self.stage = stage
        self.load = load
        self.books: list[KnownLedger] = []
        self.of_writer: dict[str, list[KnownLedger]] = {}
        self.writing: dict[str, None] = {}
        """Writers that have not finished."""
        self.counts: dict[str, int] = {}
        self.acknowledged_count = 0
        self._seen: dict[str, bytes] = {}
        self.born_s: dict[int, float] = {}
        """Time at which the metadata of each ledger first appeared."""
        self.gone_s: dict[int, float] = {}
        """Deletion times of deleted ledgers."""
        self.late: dict[int, None] = {}
        """Ledgers restored after their bookies may have dropped them: their entries need not be readable."""
        rot = any(strike.kind in ("bit_rot", "directory_rot") for strike in stage.plan.faults)
        # Without a digest bit rot cannot be detected.
        self.digest = DigestType.CRC32C if rot and load.digest == "DUMMY" else DigestType[load.digest]
        stage.cluster.store.observer = self._observe

    def count(self, name: str, by: int = 1) -> None:
        """Count an event."""
        self.counts[name] = self.counts.get(name, 0) + by

    def add(self, book: KnownLedger) -> None:
        """Add a new ledger, and draw its recoveries."""
        self.books.append(book)
        self.of_writer.setdefault(book.writer_name, []).append(book)
        chance, load = self.stage.chance("recovery of", book.writer_name, len(self.of_writer[book.writer_name])), self.load
        names = [f"recoverer-{number}" for number in range(1, load.recoverers + 1)]
        if chance.random() < load.zombie_share:
            for name in self.chosen(chance.random(), names):
                book.due[name] = book.made_s + load.zombie_delay_s * 2 * chance.random()

    def chosen(self, draw: float, names: Sequence[str]) -> list[str]:
        """Recoverers of a ledger: one of them or, in two cases of five, all."""
        if draw < 0.4 or not names:
            return list(names)
        return [names[int((draw - 0.4) / 0.6 * len(names)) % len(names)]]

    def look(self) -> None:
        """Find ledgers that have lost their writer, and draw their recoveries."""
        for book in self.books:
            if book.left_s is None and not book.has_writer:
                book.left_s = self.stage.time()
                if not book.ended:
                    chance = self.stage.chance("recovery of what was left", book.ledger_id)
                    names = [f"recoverer-{number}" for number in range(1, self.load.recoverers + 1)]
                    for name in self.chosen(chance.random(), names):
                        book.due.setdefault(name, book.left_s + self.load.recovery_delay_s * 2 * chance.random())

    def hurry(self, book: KnownLedger) -> None:
        """Have the ledger recovered at once, although a writer writes it."""
        book.due.setdefault("recoverer-1", self.stage.time())

    def sent(self, book: KnownLedger, entry_id: int, payload: bytes, last_of_append: int = -1) -> None:
        """Record that its writer is about to send an entry."""
        self.stage.history.add(Sent(self.stage.time(), book.writer_name, book.ledger_id, entry_id, payload, last_of_append))

    def acknowledged(self, book: KnownLedger, entry_id: int, confirmed_told: int) -> None:
        """Record that an entry was acknowledged. `confirmed_told`: the last-add-confirmed that it carries."""
        self.stage.history.add(Acknowledged(self.stage.time(), book.writer_name, book.ledger_id, entry_id))
        self.acknowledged_count += 1
        book.acknowledged_to = max(book.acknowledged_to, entry_id)
        book.confirmed_told = max(book.confirmed_told, confirmed_told)

    def bury(self, book: KnownLedger) -> None:
        """Record the writer's last-add-confirmed at its end, which it may have sent to bookies only."""
        if not book.buried:
            book.buried = True
            self.count("ensemble_changes", book.writer.ensemble_changes)
            self.stage.history.add(Confirmed(self.stage.time(), book.writer_name, book.ledger_id, book.writer.last_add_confirmed, True))

    def bury_all(self) -> None:
        """Record the end of all writers."""
        for book in self.books:
            self.bury(book)

    def note_end(self, ledger_id: int, observer: str, last_entry_id: int, length: int | None) -> None:
        """Record that an observer saw a ledger closed."""
        self.stage.history.add(Ended(self.stage.time(), observer, ledger_id, last_entry_id, length))
        for book in self.books:
            if book.ledger_id == ledger_id:
                book.ended = True

    async def note_end_of(self, reader: LedgerReader, observer: str) -> None:
        """Record the end of a ledger that was reported as closed to a reader."""
        if not reader.is_closed:
            await reader.refresh_metadata()
        assert reader.is_closed, f"{observer} was told that ledger {reader.ledger_id} has ended, and it is not closed"
        self.note_end(reader.ledger_id, observer, reader.last_add_confirmed, reader.length)

    def _observe(self, paths: Sequence[str]) -> None:
        """Record every version of every ledger's metadata in the history, at the moment at which it takes effect."""
        for path in paths:
            ledger_id = ledger_of(path)
            if ledger_id is None:
                continue
            if self.stage.cluster.store.exists(path) is None:
                self._seen.pop(path, None)
                self.gone_s[ledger_id] = self.stage.time()
                self.stage.history.add(Deleted(self.stage.time(), ledger_id))
                # Entries of a deleted ledger need not be readable, so an unexpected deletion could hide a loss.
                if any(book.ledger_id == ledger_id and not book.deleted for book in self.books):
                    self.stage.problems.append(f"ledger {ledger_id} was deleted at {self.stage.time():.6f}, and nobody had asked for that")
                continue
            data, stat = self.stage.cluster.store.get(path)
            if self._seen.get(path) == data:
                continue
            self._seen[path] = data
            self.born_s.setdefault(ledger_id, self.stage.time())
            self._note_return(ledger_id)
            try:
                self.stage.history.add(metadata_event(self.stage.time(), ledger_id, stat.version, decode_metadata(data)))
            except FormatError as error:
                self.stage.problems.append(f"the metadata of ledger {ledger_id} cannot be read: {error}")

    def _note_return(self, ledger_id: int) -> None:
        """Record the restoration of a deleted ledger."""
        gone_s = self.gone_s.pop(ledger_id, None)
        if gone_s is None or not any(book.ledger_id == ledger_id and book.wanted_back for book in self.books):
            return
        # Entries lost by a late restoration are not recovered by a second deletion and a restoration in time (seed 80120).
        in_time = ledger_id not in self.late and self.stage.time() - gone_s <= self.stage.plan.storage.trash_period_s - CLOCKS_APART_S
        if not in_time:
            self.late[ledger_id] = None
        self.count("undeletions" if in_time else "undeletions_late")
        self.stage.history.add(Undeleted(self.stage.time(), ledger_id, in_time))


def ledger_of(path: str) -> int | None:
    """The ledger whose metadata node this is; None for all other nodes."""
    parts = path.removeprefix("/ledgers/").split("/")
    digits = "".join(parts[:-1]) + parts[-1].removeprefix("L")
    return int(digits) if len(parts) in (3, 5) and parts[-1].startswith("L") and digits.isdecimal() else None


def metadata_event(time_s: float, ledger_id: int, version: int, metadata: LedgerMetadata) -> MetadataWritten:
    """Metadata in the form that the checkers use."""
    segments = tuple((segment.first_entry_id, segment.ensemble) for segment in metadata.segments)
    sizes = (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
    last = (metadata.last_entry_id, metadata.length) if metadata.is_closed else (None, None)
    return MetadataWritten(time_s, ledger_id, version, STATES[metadata.state], sizes, segments, *last)


def holders(metadata: LedgerMetadata, entry_id: int) -> list[str]:
    """The bookies that the metadata names for an entry."""
    ensemble = metadata.ensemble_of(entry_id)
    return [ensemble[position] for position in write_set(entry_id, metadata.ensemble_size, metadata.write_quorum)]


def reading_client(client: Client, load: LedgerLoad) -> AbstractAsyncContextManager[Client]:
    """The client of a reader."""
    return client_of_wire(client, "v3" if load.wire == "mixed" else client.settings.wire)


@asynccontextmanager
async def client_of_wire(client: Client, wire: str) -> AsyncIterator[Client]:
    """The client itself, or a second one on the same node that uses this version of the protocol."""
    if client.settings.wire == wire:
        yield client
    else:
        async with Client(client.host, client.metadata, replace(client.settings, wire=wire)) as other:
            yield other


async def pause(stage: RunContext, seconds: float) -> None:
    """Sleep, but not beyond the end of the faults."""
    if stage.quiet.is_set():
        await asyncio.sleep(min(seconds, 0.2))
        return
    try:
        async with asyncio.timeout(seconds):
            await stage.quiet.wait()
    except TimeoutError:
        pass  # The pause is over, and faults go on.
