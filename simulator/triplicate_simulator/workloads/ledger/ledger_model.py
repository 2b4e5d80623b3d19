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
    abandoned: bool = False
    """Its writer has abandoned it, or lost it."""
    abandoned_s: float | None = None
    """When it was first seen to have no writer."""
    ended: bool = False
    """An actor saw it closed."""
    acknowledged_to: int = -1
    confirmed_carried: int = -1
    """Last-add-confirmed that its acknowledged entries carry. Every reader of a ledger written in order must know it at once."""
    recoveries_due: dict[str, float] = field(default_factory=dict)
    """Times of its recoveries, by recoverer. Set at its creation for ledgers whose writer lives, otherwise when it was abandoned."""
    retired: bool = False
    deleted: bool = False
    """An actor has requested its deletion."""
    undelete_requested: bool = False
    """An actor has requested its restoration."""

    @property
    def is_plain(self) -> bool:
        """Whether its entries are numbered and sent in order."""
        return "adv" not in self.kind

    @property
    def has_writer(self) -> bool:
        """Whether a writer may still append."""
        return not self.abandoned and self.host.alive


class LedgerModel:
    """All ledgers of a run, in the order of their creation."""

    def __init__(self, context: RunContext, load: LedgerLoad) -> None:
        self.context = context
        self.load = load
        self.ledgers: list[KnownLedger] = []
        self.of_writer: dict[str, list[KnownLedger]] = {}
        self.writing: dict[str, None] = {}
        """Writers that have not finished."""
        self.counts: dict[str, int] = {}
        self.acknowledged_count = 0
        self._seen: dict[str, bytes] = {}
        self.created_s: dict[int, float] = {}
        """Time at which the metadata of each ledger first appeared."""
        self.deleted_s: dict[int, float] = {}
        """Deletion times of deleted ledgers."""
        self.restored_late: dict[int, None] = {}
        """Ledgers restored after their bookies may have dropped them: their entries need not be readable."""
        rot = any(strike.kind in ("bit_rot", "directory_rot") for strike in context.plan.faults)
        # Without a digest bit rot cannot be detected.
        self.digest = DigestType.CRC32C if rot and load.digest == "DUMMY" else DigestType[load.digest]
        context.cluster.store.observer = self._observe

    def count(self, name: str, by: int = 1) -> None:
        """Count an event."""
        self.counts[name] = self.counts.get(name, 0) + by

    def is_of_log(self, ledger_id: int) -> bool:
        """Whether a ledger is written and judged as part of a log."""
        return False

    def add(self, ledger: KnownLedger) -> None:
        """Add a new ledger, and draw its recoveries."""
        self.ledgers.append(ledger)
        self.of_writer.setdefault(ledger.writer_name, []).append(ledger)
        rng, load = self.context.rng("recovery of", ledger.writer_name, len(self.of_writer[ledger.writer_name])), self.load
        names = [f"recoverer-{number}" for number in range(1, load.recoverers + 1)]
        if rng.random() < load.zombie_share:
            for name in self.choose_recoverers(rng.random(), names):
                ledger.recoveries_due[name] = ledger.made_s + load.zombie_delay_s * 2 * rng.random()

    def choose_recoverers(self, draw: float, names: Sequence[str]) -> list[str]:
        """Recoverers of a ledger: one of them or, in two cases of five, all."""
        if draw < 0.4 or not names:
            return list(names)
        return [names[int((draw - 0.4) / 0.6 * len(names)) % len(names)]]

    def find_abandoned(self) -> None:
        """Find ledgers that have lost their writer, and draw their recoveries."""
        for ledger in self.ledgers:
            if ledger.abandoned_s is None and not ledger.has_writer:
                ledger.abandoned_s = self.context.time()
                if not ledger.ended:
                    rng = self.context.rng("recovery of what was left", ledger.ledger_id)
                    names = [f"recoverer-{number}" for number in range(1, self.load.recoverers + 1)]
                    for name in self.choose_recoverers(rng.random(), names):
                        ledger.recoveries_due.setdefault(name, ledger.abandoned_s + self.load.recovery_delay_s * 2 * rng.random())

    def recover_now(self, ledger: KnownLedger) -> None:
        """Have the ledger recovered at once, although a writer writes it."""
        ledger.recoveries_due.setdefault("recoverer-1", self.context.time())

    def note_sent(self, ledger: KnownLedger, entry_id: int, payload: bytes, last_of_append: int = -1) -> None:
        """Record that its writer is about to send an entry."""
        self.context.history.add(Sent(self.context.time(), ledger.writer_name, ledger.ledger_id, entry_id, payload, last_of_append))

    def note_acknowledged(self, ledger: KnownLedger, entry_id: int, confirmed_carried: int) -> None:
        """Record that an entry was acknowledged. `confirmed_carried`: the last-add-confirmed that it carries."""
        self.context.history.add(Acknowledged(self.context.time(), ledger.writer_name, ledger.ledger_id, entry_id))
        self.acknowledged_count += 1
        ledger.acknowledged_to = max(ledger.acknowledged_to, entry_id)
        ledger.confirmed_carried = max(ledger.confirmed_carried, confirmed_carried)

    def retire(self, ledger: KnownLedger) -> None:
        """Record the writer's last-add-confirmed at its end, which it may have sent to bookies only."""
        if not ledger.retired:
            ledger.retired = True
            self.count("ensemble_changes", ledger.writer.ensemble_changes)
            self.context.history.add(
                Confirmed(self.context.time(), ledger.writer_name, ledger.ledger_id, ledger.writer.last_add_confirmed, True)
            )

    def retire_all(self) -> None:
        """Record the end of all writers."""
        for ledger in self.ledgers:
            self.retire(ledger)

    def note_end(self, ledger_id: int, observer: str, last_entry_id: int, length: int | None) -> None:
        """Record that an observer saw a ledger closed."""
        self.context.history.add(Ended(self.context.time(), observer, ledger_id, last_entry_id, length))
        for ledger in self.ledgers:
            if ledger.ledger_id == ledger_id:
                ledger.ended = True

    async def note_end_of(self, reader: LedgerReader, observer: str) -> None:
        """Record the end of a ledger that was reported as closed to a reader."""
        if not reader.is_closed:
            await reader.refresh_metadata()
        assert reader.is_closed, f"{observer} saw the end of ledger {reader.ledger_id}, and it is not closed"
        self.note_end(reader.ledger_id, observer, reader.last_add_confirmed, reader.length)

    def _observe(self, paths: Sequence[str]) -> None:
        """Record every version of every ledger's metadata in the history, at the moment at which it takes effect."""
        for path in paths:
            ledger_id = ledger_of(path)
            if ledger_id is None:
                continue
            if self.context.cluster.store.exists(path) is None:
                self._seen.pop(path, None)
                self.deleted_s[ledger_id] = self.context.time()
                self.context.history.add(Deleted(self.context.time(), ledger_id))
                # Entries of a deleted ledger need not be readable, so an unexpected deletion could hide a loss.
                if any(ledger.ledger_id == ledger_id and not ledger.deleted for ledger in self.ledgers):
                    self.context.problems.append(f"ledger {ledger_id} was deleted at {self.context.time():.6f}, which was not requested")
                continue
            data, stat = self.context.cluster.store.get(path)
            if self._seen.get(path) == data:
                continue
            self._seen[path] = data
            self.created_s.setdefault(ledger_id, self.context.time())
            self._note_undelete(ledger_id)
            try:
                self.context.history.add(metadata_event(self.context.time(), ledger_id, stat.version, decode_metadata(data)))
            except FormatError as error:
                self.context.problems.append(f"the metadata of ledger {ledger_id} cannot be read: {error}")

    def _note_undelete(self, ledger_id: int) -> None:
        """Record the restoration of a deleted ledger."""
        deleted_s = self.deleted_s.pop(ledger_id, None)
        if deleted_s is None or not any(ledger.ledger_id == ledger_id and ledger.undelete_requested for ledger in self.ledgers):
            return
        # Entries lost by a late restoration are not recovered by a second deletion and a restoration in time (seed 80120).
        in_time = (
            ledger_id not in self.restored_late
            and self.context.time() - deleted_s <= self.context.plan.storage.trash_period_s - CLOCKS_APART_S
        )
        if not in_time:
            self.restored_late[ledger_id] = None
        self.count("undeletions" if in_time else "undeletions_late")
        self.context.history.add(Undeleted(self.context.time(), ledger_id, in_time))


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


async def pause(context: RunContext, seconds: float) -> None:
    """Sleep, but not beyond the end of the faults."""
    if context.faults_over.is_set():
        await asyncio.sleep(min(seconds, 0.2))
        return
    try:
        async with asyncio.timeout(seconds):
            await context.faults_over.wait()
    except TimeoutError:
        pass  # The pause is over, and faults go on.
