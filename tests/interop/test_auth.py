"""Authentication: our client on bookies without it, and on one of Apache's with it; over both wires."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.interop.bookies import ApacheBookie, Cluster, OurBookie, initialise_with_ours
from tests.interop.driver import SeenEntry
from tests.interop.scenes import WIRES, append_all, expected, seen
from tests.interop.stand import CLUSTERS, Stand, our_settings
from tests.interop.test_same_answers import Talk
from triplicate import Client
from triplicate.errors import NotEnoughBookies, Unauthorized
from triplicate.metadata import open_cluster
from triplicate.runtime import real_host
from triplicate.wire import AuthRequest, AuthResponse, ReadRequest, ReadResponse, Status

DISABLED = "AuthDisabledPlugin"
COUNT = 10
UNKNOWN_LEDGER = 8_000_000_000


class Pass:
    """An authenticator that counts its calls; it sends one word after its greeting."""

    plugin = "interop"

    def __init__(self, word: bytes = b"sesame") -> None:
        self.word = word
        self.begun = 0
        self.answered = 0

    def first_token(self) -> bytes:
        self.begun += 1
        return b"it is me"

    def answer(self, token: bytes) -> bytes | None:
        self.answered += 1
        return self.word if token == b"password?" else None


class AskingBookie(ApacheBookie):
    """Apache's bookie with an authentication that requires a password (the driver's ``AskingAuth``)."""

    def command(self) -> list[str]:
        command = super().command()
        with (self.folder / "bookie.conf").open("a") as configuration:
            configuration.write("bookieAuthProviderFactoryClass=interop.AskingAuth\n")
        return command


@pytest.fixture(scope="module")
def asking(stand: Stand) -> Iterator[Cluster]:
    """A cluster of one bookie that requires authentication."""
    stand.make_root("asking")
    initialise_with_ours(stand.uri("asking"))
    bookie = AskingBookie("asking-apache-1", stand.uri("asking"), stand.new_folder())
    cluster = Cluster("asking", stand.servers("asking"), [bookie], stand.uri("asking"))
    try:
        cluster.start()
        stand.wait_writable(cluster)
        yield cluster
    finally:
        cluster.stop()


async def write_and_read(cluster: Cluster, wire: str, authenticator: Pass | None, size: int, **settings: Any) -> list[SeenEntry | None]:
    """Write and read a ledger with an ensemble of `size` bookies, with a new client."""
    async with AsyncExitStack() as stack:
        host = real_host("authenticating")
        metadata = await open_cluster(cluster.uri, host)
        stack.push_async_callback(metadata.aclose)
        client = await stack.enter_async_context(Client(host, metadata, our_settings(wire, **settings), authenticate=authenticator))
        sizes: dict[str, Any] = {"ensemble_size": size, "write_quorum": min(size, 3), "ack_quorum": min(size, 2)}
        async with await client.create(**sizes) as writer:
            for outcome in await append_all(writer, 0, COUNT):
                if not isinstance(outcome, int):
                    raise outcome
            # This request always uses version 3, and so a second connection if the wire is version 2.
            await writer.force()
        async with await client.open(writer.ledger_id) as reader:
            return seen(await reader.read(0, COUNT - 1))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("bookies", CLUSTERS)
def test_our_client_authenticates_with_a_bookie_without_authentication(stand: Stand, bookies: str, wire: str) -> None:
    """The bookies answer that they have no authentication, and the client continues."""
    cluster = stand.cluster(bookies)
    authenticator = Pass()
    assert stand.run(write_and_read(cluster, wire, authenticator, cluster.ensemble_size)) == expected(0, COUNT - 1)
    # Once for each connection; the bookies sent no further token.
    assert authenticator.begun >= cluster.ensemble_size
    assert authenticator.answered == 0


@pytest.mark.parametrize("token", [b"", b"token"], ids=["empty-token", "token"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", [OurBookie, ApacheBookie], ids=["ours", "apache"])
def test_a_bookie_without_authentication_answers_so(
    stand: Stand, kind: type[OurBookie] | type[ApacheBookie], wire: str, token: bytes
) -> None:
    """The connection then works, under any name of the plugin."""
    bookie = next(bookie for bookie in stand.cluster("mixed").bookies if isinstance(bookie, kind))
    talk = Talk(bookie, wire)
    for plugin in ("sasl", "anything"):
        assert talk.ask(AuthRequest(plugin, token)) == AuthResponse(Status.OK, DISABLED, b"")
    answer = talk.ask(ReadRequest(UNKNOWN_LEDGER, 0))
    assert isinstance(answer, ReadResponse)
    assert answer.status == Status.NO_LEDGER
    talk.close()


@pytest.mark.parametrize("wire", WIRES)
def test_our_client_answers_a_bookies_challenge(stand: Stand, asking: Cluster, wire: str) -> None:
    authenticator = Pass()
    assert stand.run(write_and_read(asking, wire, authenticator, 1)) == expected(0, COUNT - 1)
    # The challenge, and the acceptance.
    assert authenticator.answered == 2 * authenticator.begun > 0


@pytest.mark.parametrize("authenticator", [Pass(b"wrong"), None], ids=["wrong-word", "no-authenticator"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_bookie_with_authentication_refuses_other_clients(stand: Stand, asking: Cluster, wire: str, authenticator: Pass | None) -> None:
    with pytest.raises((NotEnoughBookies, Unauthorized)):
        stand.run(write_and_read(asking, wire, authenticator, 1, add_timeout_s=2.0))
