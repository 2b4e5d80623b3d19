"""A client whose bookie sends damaged answers: every operation ends in time with one of our errors, and no other exception escapes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from tests.fuzz.corpus import golden_frames
from triplicate.client import Client, LedgerReader, LedgerWriter
from triplicate.config import ClientSettings
from triplicate.errors import TriplicateError
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, bookie_service
from triplicate.runtime import Host, real_host
from triplicate.wire import BookieInfoRequest, BookieInfoResponse, Status, v3

ROUNDS = 20
IN_TIME_S = 20.0
SEED = 20130108


def damaged(rng: random.Random, frame: bytes) -> bytes:
    """A frame with some bytes changed, sometimes also its length; half of the frames stay unchanged."""
    changed = bytearray(frame)
    for _ in range(max(0, rng.randint(-3, 4))):
        place = rng.randrange(0 if rng.random() < 0.2 else 4, len(changed))
        changed[place] = rng.randrange(256)
    return bytes(changed)


class Liar:
    """Answers any request with damaged answers that have the request's ids, so that the client examines them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.frames = golden_frames()
        self.asked = 0
        self.server: asyncio.Server | None = None

    async def start(self) -> int:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return int(self.server.sockets[0].getsockname()[1])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.read(65536):
                self.asked += 1
                other = damaged(self.rng, self.rng.choice(self.frames)) if self.rng.random() < 0.3 else b""
                writer.write(damaged(self.rng, self.answer(request)) + other)
        except ConnectionError:
            return
        finally:
            writer.close()

    def answer(self, request: bytes) -> bytes:
        """An answer with the request's version, operation and ids, so that the client does not ignore it; seldom a good one."""
        if request[4:5] != b"\x02":
            asked = v3.decode_request(request[4 : 4 + int.from_bytes(request[:4], "big")])
            status = self.rng.choice([Status.OK, Status.NO_ENTRY, Status.NO_LEDGER, Status.FENCED])
            if isinstance(asked.request, BookieInfoRequest) and status is Status.OK:
                return v3.encode_response(BookieInfoResponse(status, 2, 1), asked.txn_id)
            return v3.encode_refusal(asked, status)
        ids = request[28:44] if request[5] == 1 else request[8:24]
        body = request[4:6] + b"\0\0" + self.rng.choice([0, 1, 2, 101, 104]).to_bytes(4, "big") + ids
        return len(body).to_bytes(4, "big") + body


async def cluster_of_a_liar(host: Host, rng: random.Random) -> tuple[Liar, ClusterMetadata, MemoryTree]:
    liar = Liar(rng)
    tree = MemoryTree(MemoryStore(host.clock))
    metadata = await ClusterMetadata.open(tree, host, create=True)
    await metadata.bookies.register("liar", bookie_service("127.0.0.1", await liar.start()))
    return liar, metadata, tree


async def ends(operation: Callable[[], Awaitable[Any]]) -> bool:
    """Whether it ended in time by itself: with a result, which damaged bytes may form, or one of our errors."""
    try:
        async with asyncio.timeout(IN_TIME_S):
            await operation()
    except TriplicateError:
        return True
    return True


async def append(writer: LedgerWriter) -> None:
    outcomes = await asyncio.gather(*(writer.append(b"data") for _ in range(3)), return_exceptions=True)
    assert all(isinstance(outcome, int | TriplicateError) for outcome in outcomes), outcomes


def reads(client: Client, reader: LedgerReader) -> list[Callable[[], Awaitable[Any]]]:
    return [
        reader.read_last_confirmed,
        reader.try_last_confirmed,
        reader.read_explicit_last_confirmed,
        lambda: reader.read_unconfirmed(0, 2),
        lambda: reader.read_batch(0, 3),
        lambda: reader.wait_for_entry(0, 0.1),
        lambda: reader.entries_on("liar"),
        lambda: client.bookie_info("liar"),
    ]


@pytest.mark.parametrize("wire", ["v2", "v3"])
def test_damaged_answers_end_every_operation_with_a_known_error(wire: str) -> None:
    async def body() -> None:
        escaped: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: escaped.append(context))
        rng = random.Random(SEED)
        host = real_host("test", seed=1)
        liar, metadata, tree = await cluster_of_a_liar(host, rng)
        settings = ClientSettings(
            wire=wire, add_timeout_s=0.2, read_timeout_s=0.2, connect_timeout_s=1.0, reconnect_first_s=0.001, reconnect_maximum_s=0.001,
            metadata_timeout_s=1.0,
        )  # fmt: skip
        opened = 0
        async with Client(host, metadata, settings) as client:
            for _ in range(ROUNDS):
                writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
                assert await ends(partial(append, writer))
                assert await ends(writer.force)
                try:
                    reader = await client.open(writer.ledger_id)
                except TriplicateError:
                    continue
                opened += 1
                for operation in reads(client, reader):
                    assert await ends(operation), operation
                await reader.aclose()
                assert await ends(partial(client.recover, writer.ledger_id))
                assert await ends(writer.close)
        assert liar.server is not None
        liar.server.close()
        await metadata.aclose()
        await tree.close()
        assert opened > 0
        assert liar.asked > ROUNDS * 2
        assert escaped == []

    asyncio.run(body())
