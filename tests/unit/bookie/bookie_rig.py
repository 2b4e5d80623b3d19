"""One bookie in a simulated world, spoken to in raw v2 packets, with a disk that forgets what was not synced."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from tests.waiting import eventually
from triplicate.bookie import Bookie
from triplicate.config import BookieSettings
from triplicate.ledger import DigestType, EnsembleSegment, EntryCodec, LedgerMetadata, LedgerState, decode_availability
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.sim import HostCrashed, World
from triplicate.wire import (
    BOOKIE_FRAME_BYTES,
    AddRequest,
    BatchReadRequest,
    BatchReadResponse,
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
    Status,
    WriteLacRequest,
    WriteLacResponse,
    decode_response,
    encode_request,
    v3,
)
from triplicate_simulator import ClusterOptions, SimulatedCluster, small_bookie_settings

Result = TypeVar("Result")
NAME = "bookie-1"


class RawClient(asyncio.Protocol):
    """Sends packets and hands out answers in the order in which they arrive."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[Response] = asyncio.Queue()
        self.bodies: list[bytes] = []
        """Every answer as it came."""
        self.closed = False
        self.transport: asyncio.Transport | None = None
        self._frames = FrameBuffer(BOOKIE_FRAME_BYTES + 1024)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for body in self._frames.bodies(data):
            self.bodies.append(body)
            self.take(body)

    def take(self, body: bytes) -> None:
        if body[0] <= 2:
            self.answers.put_nowait(decode_response(body))

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True

    def send(self, *requests: Request) -> None:
        self.send_bytes(b"".join(map(self.encode, requests)))

    def encode(self, request: Request) -> bytes:
        return encode_request(request)

    async def body(self, count: int, timeout_s: float = 20.0) -> bytes:
        """The answer number `count`, from 0, undecoded."""
        await eventually(lambda: len(self.bodies) > count, timeout_s)
        return self.bodies[count]

    async def until_closed(self, timeout_s: float = 20.0) -> None:
        await eventually(lambda: self.closed, timeout_s)

    def send_bytes(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    async def answer(self, timeout_s: float = 20.0) -> Response:
        async with asyncio.timeout(timeout_s):
            return await self.answers.get()

    async def ask(self, request: Request) -> Response:
        self.send(request)
        return await self.answer()

    async def add(self, codec: EntryCodec, entry_id: int, payload: bytes = b"payload", **flags: bool) -> Status:
        body = codec.encode(entry_id, entry_id - 1, (entry_id + 1) * len(payload), payload)
        response = await self.ask(AddRequest(codec.ledger_id, entry_id, codec.master_key, body, **flags))
        return response.status

    async def read(self, ledger_id: int, entry_id: int) -> ReadResponse:
        response = await self.ask(ReadRequest(ledger_id, entry_id))
        assert isinstance(response, ReadResponse)
        return response

    async def fence(self, codec: EntryCodec, entry_id: int = -1) -> ReadResponse:
        response = await self.ask(ReadRequest(codec.ledger_id, entry_id, fence=True, master_key=codec.master_key))
        assert isinstance(response, ReadResponse)
        return response

    async def batch(self, ledger_id: int, start: int, count: int = 0, size: int = 1 << 20) -> BatchReadResponse:
        response = await self.ask(BatchReadRequest(ledger_id, start, 7, count, size))
        assert isinstance(response, BatchReadResponse)
        return response


class V3Client(RawClient):
    """The same over version 3. `txn_ids` are those of the requests sent, `answered` those of the answers, each in order."""

    def __init__(self) -> None:
        super().__init__()
        self.txn_ids: list[int] = []
        self.answered: list[int] = []

    def take(self, body: bytes) -> None:
        txn_id, response = v3.decode_response(body)
        self.answered.append(txn_id)
        self.answers.put_nowait(response)

    def encode(self, request: Request) -> bytes:
        self.txn_ids.append(len(self.txn_ids) + 100)
        return v3.encode_request(request, self.txn_ids[-1])

    async def ask(self, request: Request) -> Response:
        response = await super().ask(request)
        assert self.answered[-1] == self.txn_ids[-1], "the answer is to the request"
        return response

    async def write_lac(self, codec: EntryCodec, lac: int) -> Status:
        response = await self.ask(WriteLacRequest(codec.ledger_id, lac, codec.master_key, codec.encode_lac(lac)))
        assert isinstance(response, WriteLacResponse)
        return response.status

    async def read_lac(self, ledger_id: int) -> ReadLacResponse:
        response = await self.ask(ReadLacRequest(ledger_id))
        assert isinstance(response, ReadLacResponse)
        return response

    async def force(self, ledger_id: int) -> Status:
        response = await self.ask(ForceRequest(ledger_id))
        assert isinstance(response, ForceResponse)
        return response.status

    async def entries(self, ledger_id: int) -> list[range]:
        response = await self.ask(ListEntriesRequest(ledger_id))
        assert isinstance(response, ListEntriesResponse)
        assert response.status is Status.OK, response
        assert response.availability is not None
        return list(decode_availability(response.availability).runs())


class Rig:
    """A world with one bookie."""

    def __init__(self, seed: int = 1, **settings: Any) -> None:
        self.world = World(seed)

        def make_settings(name: str) -> BookieSettings:
            # Most ledgers here have no metadata, so garbage collection runs only where a test asks for it.
            return dataclasses.replace(small_bookie_settings(name), **{"gc_interval_s": 3600.0, **settings})

        # Nobody supervises this bookie: one that has failed stays as it is, to be looked at.
        options = ClusterOptions(bookies=1, bookie_settings=make_settings, start_again_s=3600.0)
        self.cluster = SimulatedCluster(self.world, options)
        self.node = self.cluster.bookies[NAME]
        self.client_host = self.world.start_host("raw-client")

    @property
    def bookie(self) -> Bookie:
        assert self.node.bookie is not None
        return self.node.bookie

    @property
    def disk(self) -> Any:
        return self.world.disk(NAME)

    async def connect(self) -> RawClient:
        _, protocol = await self.client_host.port.network.connect(RawClient, *self.bookie.address)
        assert isinstance(protocol, RawClient)
        return protocol

    async def connect_v3(self) -> V3Client:
        _, protocol = await self.client_host.port.network.connect(V3Client, *self.bookie.address)
        assert isinstance(protocol, V3Client)
        return protocol

    async def create_ledger(self, ledger_id: int, digest_type: DigestType = DigestType.CRC32C, password: bytes = b"") -> EntryCodec:
        """Metadata as a client would have made it."""
        metadata = await ClusterMetadata.open(MemoryTree(self.cluster.store), self.client_host.port)
        value = LedgerMetadata(
            1, 1, 1, (EnsembleSegment(0, (NAME,)),), LedgerState.OPEN, digest_type=digest_type, password=password, custom={}
        )
        await metadata.ledgers.create(ledger_id, value)
        await metadata.aclose()
        return EntryCodec(ledger_id, digest_type, password)

    async def delete_ledger(self, ledger_id: int) -> None:
        metadata = await ClusterMetadata.open(MemoryTree(self.cluster.store), self.client_host.port)
        await metadata.ledgers.delete(ledger_id)
        await metadata.aclose()

    async def restart(self, *, keep_unsynced: bool = False) -> None:
        """Kill the bookie, by default with its unsynced writes, and start it again."""
        self.node.crash(keep_unsynced=keep_unsynced)
        await self.node.start()

    async def flushed(self) -> None:
        """Wait until a flush that began after now has ended."""
        seen = self.bookie.storage.flusher.flushes
        await eventually(lambda: self.bookie.storage.flusher.flushes != seen)

    def files(self, folder: str) -> list[str]:
        """Names in a directory of the bookie, as programs see them."""
        prefix = folder.rstrip("/") + "/"
        return sorted(path[len(prefix) :] for path in self.disk.names.live if path.startswith(prefix))

    def kill_at(self, step: int, happened: list[str], *, keep_unsynced: bool = False) -> None:
        """Kill the bookie at its disk's operation number `step` from now on; the operation is appended to `happened`.

        To be ended by setting `disk.before_operation` to None. With fewer operations than that nothing happens.
        """
        operations = 0

        def kill(kind: str, path: str) -> None:
            nonlocal operations
            if operations == step:
                happened.append(f"{kind} {path}")
                self.node.crash(keep_unsynced=keep_unsynced)
                raise HostCrashed("test")
            operations += 1

        self.disk.before_operation = kill

    def facts(self, kind: str) -> list[Any]:
        return [fact for fact in self.world.recorder.facts if fact.kind == kind]


def run_rig(body: Callable[[Rig], Awaitable[Result]], seed: int = 1, **settings: Any) -> Result:
    """Start the rig's cluster, run `body(rig)` in it, and throw the world away."""
    rig = Rig(seed, **settings)

    async def main() -> Result:
        await rig.cluster.start()
        return await rig.client_host.call(_as_coroutine(body(rig)))

    try:
        return rig.world.run(main())
    finally:
        rig.world.close()


async def _as_coroutine(awaitable: Awaitable[Result]) -> Result:
    return await awaitable
