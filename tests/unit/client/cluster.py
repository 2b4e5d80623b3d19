"""A cluster for client tests: real loop and loopback sockets, metadata in memory, and bookies that a test controls.

The bookies keep entries in dictionaries and speak the message forms of both versions, so they share no fast path with the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from tests.entry_headers import entry_header
from tests.waiting import PLAY_LIMIT_S, eventually
from triplicate.client import Client
from triplicate.config import ClientSettings
from triplicate.ledger import LedgerMetadata, encode_availability
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, bookie_service
from triplicate.runtime import Host, Listener, Metrics, real_host
from triplicate.security import ClientCertificates, TlsIdentity
from triplicate.wire import (
    LAST_ENTRY,
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    BatchReadResponse,
    BookieInfoRequest,
    BookieInfoResponse,
    ForceRequest,
    ForceResponse,
    FrameBuffer,
    ListEntriesRequest,
    ListEntriesResponse,
    ReadLacRequest,
    ReadLacResponse,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    StartTlsRequest,
    StartTlsResponse,
    Status,
    WriteLacRequest,
    WriteLacResponse,
    decode_request,
    encode_response,
    is_v3,
    v3,
)

QUICK = ClientSettings(
    add_timeout_s=0.4,
    read_timeout_s=0.4,
    connect_timeout_s=1.0,
    metadata_timeout_s=1.0,
    reconnect_first_s=0.01,
    reconnect_maximum_s=0.05,
    suspect_s=0.5,
    # Which replica is asked first, and that no other is asked beside it, is part of what most tests set up.
    hedge_read_s=0.0,
    sticky_read_entries=1,
)
"""Settings under which a test of a silent bookie takes half a second instead of five."""

Rule = Callable[[Request], Status | str | None]
"""Reaction of a bookie to a request: None serves it, a status refuses it, ``hold`` keeps it for `release`, ``drop`` forgets it,
``close`` breaks the connection, ``damage`` answers with a flipped bit."""


@dataclass
class FakeLedger:
    entries: dict[int, bytes] = field(default_factory=dict)
    master_key: bytes | None = None
    fenced: bool = False
    unsynced: set[int] = field(default_factory=set)
    explicit_lac: bytes | None = None

    @property
    def max_lac(self) -> int:
        """The greatest last-add-confirmed that the bookie has received in any message."""
        told = [-1, *(entry_header(body).last_add_confirmed for body in self.entries.values())]
        return max(told if self.explicit_lac is None else [*told, int.from_bytes(self.explicit_lac[8:16], signed=True)])


@dataclass(eq=False)
class Parked:
    """A long poll that waits."""

    connection: _Connection
    request: ReadRequest
    transaction: int
    timer: asyncio.TimerHandle | None = None


class FakeBookie:
    """One bookie under a script."""

    def __init__(self, bookie_id: str, machine: str = "127.0.0.1") -> None:
        self.machine = machine
        self.bookie_id = bookie_id
        self.ledgers: dict[int, FakeLedger] = {}
        self.rules: list[Rule] = []
        self.seen: list[Request] = []
        self.held: list[tuple[_Connection, Request, int | None]] = []
        self.connections: list[_Connection] = []
        self.parked: list[Parked] = []
        self.knows_batches = True
        """False: as BookKeeper before 4.17, which breaks the connection."""
        self.knows_v3 = True
        """False: as a bookie that never heard of version 3."""
        self.answers_at_most = 1 << 30
        """Entries in the answer to a batch read."""
        self.record_status = Status.OK
        """Another status comes with the explicit record and without the last entry."""
        self.read_delay_s = 0.0
        """Time until a read is answered."""
        self.add_delay_s = 0.0
        """Time until an add is answered."""
        self.total_bytes, self.free_bytes = 1000, 900
        """Its disk space."""
        self.is_starting = False
        """True: closes every connection at once, as BookKeeper's bookie while it starts."""
        self.plugin = ""
        """Name of the authentication that it wants before anything else; ``silent`` answers no token."""
        self.refuses_tokens = False
        self.tokens: list[bytes] = []
        self.token_answer: Callable[[bytes], bytes] | None = None
        """The answer of a false bookie to each token; any request behind one counts as seen."""
        self.tls: TlsIdentity | None = None
        """None: it refuses START_TLS."""
        self.clients = ClientCertificates.NONE
        """Whether it requests certificates of clients."""
        self.start_tls_tail = b""
        """Bytes that it sends in clear behind its answer to START_TLS."""
        self.refuses_behind_tls = False
        """Whether it refuses START_TLS once more after the TLS handshake, as Apache's bookie does with a client that it does not admit."""
        self.listener: Listener | None = None

    async def start(self, host: Host, port: int = 0) -> int:
        self.listener = await host.network.listen(lambda: _Connection(self), self.machine, port)
        return self.listener.address[1]

    async def stop(self) -> None:
        """Vanish as a killed process does; the registration stays behind."""
        if self.listener is not None:
            await self.listener.close()
            self.listener = None
        for connection in list(self.connections):
            connection.abort()

    def when(self, kind: type[Any], action: Status | str, *, entry_id: int | None = None, fence: bool | None = None) -> Rule:
        """Do `action` with every request of this kind (and entry, and fence flag) from now on."""

        def rule(request: Request) -> Status | str | None:
            fits = isinstance(request, kind)
            fits = fits and (entry_id is None or getattr(request, "entry_id", None) == entry_id)
            fits = fits and (fence is None or getattr(request, "fence", None) == fence)
            return action if fits else None

        self.rules.append(rule)
        return rule

    def obey(self) -> None:
        """Forget all rules and serve what was held."""
        self.rules.clear()
        self.release()

    def release(self) -> None:
        held, self.held = self.held, []
        for connection, request, transaction in held:
            connection.answer(self.serve(request), transaction)

    def lose_what_is_not_synced(self) -> None:
        """Remove the unsynced entries of every ledger, as a crash does."""
        for ledger in self.ledgers.values():
            for entry_id in ledger.unsynced:
                ledger.entries.pop(entry_id, None)
            ledger.unsynced.clear()

    def handle(self, connection: _Connection, request: Request, transaction: int | None) -> None:
        if isinstance(request, StartTlsRequest):
            connection.start_tls(transaction)
            return
        if self.plugin and self.authenticate(connection, request, transaction):
            return
        self.seen.append(request)
        action = next((action for rule in self.rules if (action := rule(request)) is not None), None)
        if action is None and isinstance(request, ReadRequest) and request.previous_lac is not None and transaction is not None:
            self.poll(connection, request, transaction)
        elif (transaction is not None and not self.knows_v3) or (isinstance(request, BatchReadRequest) and not self.knows_batches):
            connection.abort()
        elif action is None and self.add_delay_s > 0 and isinstance(request, AddRequest):
            asyncio.get_running_loop().call_later(self.add_delay_s, connection.answer, self.serve(request), transaction)
        elif action is None and self.read_delay_s > 0 and isinstance(request, BatchReadRequest | ReadRequest):
            asyncio.get_running_loop().call_later(self.read_delay_s, connection.answer, self.serve(request), transaction)
        elif action is None:
            connection.answer(self.serve(request), transaction)
            self.wake_polls()
        elif isinstance(action, Status):
            connection.answer(v3.refusal_of(request, action), transaction)
        elif action == "hold":
            self.held.append((connection, request, transaction))
        elif action == "close":
            connection.abort()
        elif action == "damage":
            response = self.serve(request)
            assert isinstance(response, ReadResponse)
            assert response.body is not None
            response.body = response.body[:-1] + bytes([response.body[-1] ^ 1])
            connection.answer(response, transaction)
        else:
            assert action == "drop", action

    def authenticate(self, connection: _Connection, request: Request, transaction: int | None) -> bool:
        """Whether the request was a token, or came before one; the plugin ``counting`` is content with the token 2."""
        if not isinstance(request, AuthRequest):
            assert connection.authenticated, f"{request} came before the connection was authenticated"
            return False
        self.tokens.append(request.payload)
        if self.plugin == "silent":
            return True
        if self.refuses_tokens:
            if transaction is not None:
                connection.answer(AuthResponse(Status.UNAUTHORIZED, self.plugin, b""), transaction)
            connection.close()
            return True
        payload = request.payload if self.token_answer is None else self.token_answer(request.payload)
        connection.authenticated = self.plugin == v3.AUTH_DISABLED or self.token_answer is not None or request.payload == b"2"
        connection.answer(AuthResponse(Status.OK, self.plugin, payload), transaction)
        return True

    def serve(self, request: Request) -> Response:
        if isinstance(request, AddRequest):
            ledger = self.ledgers.setdefault(request.ledger_id, FakeLedger(master_key=request.master_key))
            if ledger.master_key != request.master_key:
                return v3.refusal_of(request, Status.UNAUTHORIZED)
            if ledger.fenced and not request.recovery:
                return v3.refusal_of(request, Status.FENCED)
            ledger.entries[request.entry_id] = request.body
            if request.deferred_sync:
                ledger.unsynced.add(request.entry_id)
            return AddResponse(Status.OK, request.ledger_id, request.entry_id)
        if isinstance(request, ForceRequest):
            self.ledgers.setdefault(request.ledger_id, FakeLedger()).unsynced.clear()
            return ForceResponse(Status.OK, request.ledger_id)
        if isinstance(request, WriteLacRequest):
            self.ledgers.setdefault(request.ledger_id, FakeLedger(master_key=request.master_key)).explicit_lac = request.body
            return WriteLacResponse(Status.OK, request.ledger_id)
        if isinstance(request, ReadLacRequest):
            known = self.ledgers.get(request.ledger_id, FakeLedger())
            last = known.entries[max(known.entries)] if known.entries else None
            found = last is not None or known.explicit_lac is not None
            if self.record_status is not Status.OK:
                return ReadLacResponse(self.record_status, request.ledger_id, known.explicit_lac)
            return ReadLacResponse(Status.OK if found else Status.NO_ENTRY, request.ledger_id, known.explicit_lac, last)
        if isinstance(request, ListEntriesRequest):
            if request.ledger_id not in self.ledgers:
                return v3.refusal_of(request, Status.NO_LEDGER)
            runs = encode_availability(range(entry_id, entry_id + 1) for entry_id in sorted(self.ledgers[request.ledger_id].entries))
            return ListEntriesResponse(Status.OK, request.ledger_id, runs)
        if isinstance(request, BookieInfoRequest):
            return BookieInfoResponse(Status.OK, self.total_bytes, self.free_bytes)
        if isinstance(request, BatchReadRequest):
            return self.serve_batch(request)
        assert isinstance(request, ReadRequest), request
        return self.serve_read(request)

    def serve_batch(self, request: BatchReadRequest) -> Response:
        if request.ledger_id not in self.ledgers:
            return v3.refusal_of(request, Status.NO_LEDGER)
        entries, room = self.ledgers[request.ledger_id].entries, request.max_bytes - 36
        bodies: list[bytes] = []
        for entry_id in range(request.start_entry_id, request.start_entry_id + min(request.max_count, self.answers_at_most)):
            room -= len(entries.get(entry_id, b"")) + 4
            if entry_id not in entries or (room < 0 and bodies):
                break
            bodies.append(entries[entry_id])
        if not bodies:
            return v3.refusal_of(request, Status.NO_ENTRY)
        return BatchReadResponse(Status.OK, request.ledger_id, request.start_entry_id, request.request_id, tuple(bodies))

    def poll(self, connection: _Connection, request: ReadRequest, transaction: int) -> None:
        ledger = self.ledgers.get(request.ledger_id)
        assert request.previous_lac is not None
        assert request.timeout_ms is not None
        if ledger is None or ledger.max_lac > request.previous_lac:
            connection.answer(self.serve_poll(request), transaction)
            return
        parked = Parked(connection, request, transaction)
        parked.timer = asyncio.get_running_loop().call_later(request.timeout_ms / 1000, self.answer_poll, parked)
        self.parked.append(parked)

    def answer_poll(self, parked: Parked) -> None:
        self.parked.remove(parked)
        assert parked.timer is not None
        parked.timer.cancel()
        parked.connection.answer(self.serve_poll(parked.request), parked.transaction)

    def wake_polls(self) -> None:
        for parked in list(self.parked):
            previous = parked.request.previous_lac
            assert previous is not None
            if self.ledgers[parked.request.ledger_id].max_lac > previous:
                self.answer_poll(parked)

    def serve_poll(self, request: ReadRequest) -> Response:
        ledger = self.ledgers.get(request.ledger_id)
        if ledger is None:
            return v3.refusal_of(request, Status.NO_LEDGER)
        if not ledger.entries:
            return v3.refusal_of(request, Status.NO_ENTRY)
        assert request.previous_lac is not None
        body = ledger.entries.get(request.previous_lac + 1) if ledger.max_lac > request.previous_lac else None
        entry_id = LAST_ENTRY if body is None else request.previous_lac + 1
        return ReadResponse(Status.OK, request.ledger_id, entry_id, body, ledger.max_lac)

    def serve_read(self, request: ReadRequest) -> Response:
        if request.fence:
            assert request.master_key is not None
            ledger = self.ledgers.setdefault(request.ledger_id, FakeLedger(master_key=request.master_key))
            if ledger.master_key != request.master_key:
                return v3.refusal_of(request, Status.UNAUTHORIZED)
            ledger.fenced = True
        elif request.ledger_id not in self.ledgers:
            return v3.refusal_of(request, Status.NO_LEDGER)
        entries = self.ledgers[request.ledger_id].entries
        wanted = max(entries, default=0) if request.entry_id == LAST_ENTRY else request.entry_id
        if wanted not in entries:
            return v3.refusal_of(request, Status.NO_ENTRY)
        known = None if request.fence else self.ledgers[request.ledger_id].max_lac
        return ReadResponse(Status.OK, request.ledger_id, request.entry_id, entries[wanted], known)


class _Connection(asyncio.Protocol):
    def __init__(self, bookie: FakeBookie) -> None:
        self.bookie = bookie
        self.transport: asyncio.Transport | None = None
        self.authenticated = False
        self.protected = False
        self.frames = FrameBuffer()
        self.upgrade: asyncio.Task[None] | None = None
        self.early: list[bytes] = []
        """Bytes that the client sent over TLS before this side knew that its handshake was complete."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none.
        self.bookie.connections.append(self)
        if self.bookie.is_starting:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if self in self.bookie.connections:
            self.bookie.connections.remove(self)
        for parked in [parked for parked in self.bookie.parked if parked.connection is self]:
            assert parked.timer is not None
            parked.timer.cancel()
            self.bookie.parked.remove(parked)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.upgrade is not None and not self.protected:
            self.early.append(data)
            return
        for body in self.frames.bodies(data):
            if self.transport is not None and not self.transport.is_closing():
                if is_v3(body):
                    asked = v3.decode_request(body)
                    assert asked.request is not None
                    assert asked.refusal is None
                    self.bookie.handle(self, asked.request, asked.txn_id)
                else:
                    self.bookie.handle(self, decode_request(body), None)

    def start_tls(self, transaction: int | None) -> None:
        assert transaction is not None, "START_TLS is of version 3"
        tls = self.bookie.tls
        if tls is None:
            self.answer(StartTlsResponse(Status.BAD_REQUEST), transaction)
            return
        self.answer(StartTlsResponse(Status.OK), transaction)
        assert self.transport is not None
        self.transport.write(self.bookie.start_tls_tail)
        self.upgrade = asyncio.ensure_future(self._upgrade(tls, self.transport))

    async def _upgrade(self, tls: TlsIdentity, transport: asyncio.Transport) -> None:
        network = real_host("bookie").network
        try:
            self.transport = await network.start_tls(
                transport, self, tls.server_context(self.bookie.clients), limit_s=5.0, server_name=None
            )
            self.protected = True
            if self.bookie.refuses_behind_tls:
                self.answer(StartTlsResponse(Status.IO_ERROR), 1)
            self.data_received(b"".join(self.early))
        except OSError:
            self.transport = None
            if self in self.bookie.connections:
                self.bookie.connections.remove(self)

    def answer(self, response: Response, transaction: int | None) -> None:
        """Over the version that carried the request: version 2 has no transactions."""
        if self.transport is not None:
            self.transport.write(encode_response(response) if transaction is None else v3.encode_response(response, transaction))


class FakeCluster:
    """Bookies ``a``, ``b``, ``c``, … over one metadata store."""

    def __init__(self, host: Host, store: MemoryStore, tree: MemoryTree, metadata: ClusterMetadata) -> None:
        self.host = host
        self.store = store
        self.tree = tree
        self.metadata = metadata
        self.bookies: dict[str, FakeBookie] = {}
        self.ports: dict[str, int] = {}
        self.facts: list[tuple[str, dict[str, object]]] = []
        """The traces of the clients."""

    def __getitem__(self, bookie_id: str) -> FakeBookie:
        return self.bookies[bookie_id]

    async def add(self, bookie_id: str, machine: str = "127.0.0.1") -> FakeBookie:
        """Start a bookie; `machine` is the loopback address at which it listens."""
        bookie = self.bookies[bookie_id] = FakeBookie(bookie_id, machine)
        port = self.ports[bookie_id] = await bookie.start(self.host)
        await self.metadata.bookies.register(bookie_id, bookie_service(machine, port))
        return bookie

    async def set_readonly(self, bookie_id: str, readonly: bool) -> None:
        """Move its registration; what it does with adds is for rules to say."""
        await self.metadata.bookies.set_readonly(
            bookie_id, bookie_service(self.bookies[bookie_id].machine, self.ports[bookie_id]), readonly
        )

    def told(self, kind: str) -> list[dict[str, object]]:
        """The facts of one kind, in order."""
        return [facts for told, facts in self.facts if told == kind]

    async def restart(self, bookie_id: str) -> None:
        await self.bookies[bookie_id].start(self.host, self.ports[bookie_id])

    @asynccontextmanager
    async def client(self, settings: ClientSettings = QUICK, metrics: Metrics | None = None) -> AsyncIterator[Client]:
        async with Client(self.host, self.metadata, settings, metrics) as client:
            yield client

    def holders(self, ledger_id: int, entry_id: int) -> list[str]:
        """The bookies that have a copy."""
        return [name for name, bookie in self.bookies.items() if entry_id in bookie.ledgers.get(ledger_id, FakeLedger()).entries]

    async def settled(self, ledger_id: int, last_entry_id: int, copies: int = 3) -> None:
        """Return when every copy is stored: the last ones may still be on their way when an ack quorum has theirs."""
        await eventually(lambda: all(len(self.holders(ledger_id, entry_id)) == copies for entry_id in range(last_entry_id + 1)))

    def fenced(self, ledger_id: int) -> list[str]:
        """The bookies on which the ledger is fenced."""
        return [name for name, bookie in self.bookies.items() if bookie.ledgers.get(ledger_id, FakeLedger()).fenced]

    async def metadata_of(self, ledger_id: int) -> LedgerMetadata:
        return (await self.metadata.ledgers.get(ledger_id)).value


@asynccontextmanager
async def fake_cluster(names: str = "abc", seed: int = 1, simulated: Host | None = None) -> AsyncIterator[FakeCluster]:
    """Args:
    simulated: the ports of a simulated host, for tests in virtual time; None for the real loop and sockets.
    """
    facts: list[tuple[str, dict[str, object]]] = []

    def trace(kind: str, /, **told: object) -> None:
        facts.append((kind, told))

    host = simulated or real_host("test", seed=seed, trace=trace)
    store = MemoryStore(host.clock)
    tree = MemoryTree(store)
    metadata = await ClusterMetadata.open(tree, host, create=True)
    cluster = FakeCluster(host, store, tree, metadata)
    cluster.facts = facts
    for name in names:
        await cluster.add(name)
    try:
        yield cluster
    finally:
        for bookie in cluster.bookies.values():
            await bookie.stop()
        await metadata.aclose()
        await tree.close()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine with a limit, so that a hang is a failure."""

    async def limited() -> None:
        async with asyncio.timeout(PLAY_LIMIT_S):
            await main

    asyncio.run(limited())
