"""A client that authenticates meets bookies that ask for nothing; tokens travel over both wires, to both kinds of bookie."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.interop.bookies import ApacheBookie, OurBookie
from tests.interop.scenes import WIRES, append_all, expected, seen
from tests.interop.stand import CLUSTERS, Stand, our_settings
from tests.interop.test_same_answers import Talk
from triplicate import Client
from triplicate.metadata import open_cluster
from triplicate.runtime import real_host
from triplicate.wire import AuthRequest, AuthResponse, ReadRequest, ReadResponse, Status

DISABLED = "AuthDisabledPlugin"
COUNT = 10
UNKNOWN_LEDGER = 8_000_000_000


class Pass:
    """An authenticator that counts what it was asked for."""

    plugin = "interop"

    def __init__(self) -> None:
        self.begun = 0
        self.answered = 0

    def first_token(self) -> bytes:
        self.begun += 1
        return b"it is me"

    def answer(self, token: bytes) -> bytes | None:
        self.answered += 1
        return None


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("bookies", CLUSTERS)
def test_our_client_authenticates_where_nobody_asks(stand: Stand, bookies: str, wire: str) -> None:
    """The bookies say that they have no authentication, and the client goes on."""
    cluster = stand.cluster(bookies)
    authenticator = Pass()

    async def write_and_read() -> list[Any]:
        async with AsyncExitStack() as stack:
            host = real_host("authenticating")
            metadata = await open_cluster(cluster.uri, host)
            stack.push_async_callback(metadata.aclose)
            client = await stack.enter_async_context(Client(host, metadata, our_settings(wire), authenticate=authenticator))
            async with await client.create(ensemble_size=cluster.ensemble_size) as writer:
                assert await append_all(writer, 0, COUNT) == list(range(COUNT))
                # Over version 3 in any case, and so over a connection of its own when the wire is version 2.
                await writer.force()
            async with await client.open(writer.ledger_id) as reader:
                return seen(await reader.read(0, COUNT - 1))

    assert stand.run(write_and_read()) == expected(0, COUNT - 1)
    # Once for each connection, and the bookies had nothing to reply to.
    assert authenticator.begun >= cluster.ensemble_size
    assert authenticator.answered == 0


@pytest.mark.parametrize("token", [b"", b"token"], ids=["empty-token", "token"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", [OurBookie, ApacheBookie], ids=["ours", "apache"])
def test_a_bookie_without_authentication_says_so(stand: Stand, kind: type[OurBookie] | type[ApacheBookie], wire: str, token: bytes) -> None:
    """And serves on, whatever the plugin was called."""
    bookie = next(bookie for bookie in stand.cluster("mixed").bookies if isinstance(bookie, kind))
    talk = Talk(bookie, wire)
    for plugin in ("sasl", "anything"):
        assert talk.ask(AuthRequest(plugin, token)) == AuthResponse(Status.OK, DISABLED, b"")
    answer = talk.ask(ReadRequest(UNKNOWN_LEDGER, 0))
    assert isinstance(answer, ReadResponse)
    assert answer.status == Status.NO_LEDGER
    talk.close()
