"""TLS at a bookie's door: START_TLS as BookKeeper has it, certificates of clients, and attacks on the way into TLS."""

from __future__ import annotations

import asyncio
import dataclasses
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tests.certificates import DAY_S, CertificateFolder, context_of_old_tls
from tests.tls_flight import TlsFlight, raw_socket
from tests.unit.bookie.bookie_rig import RawClient, V3Client
from tests.unit.bookie.server.door_rig import (
    PASSWORD,
    DoorRig,
    challenge,
    codec,
    digest_response,
    plain,
    protect,
    run_door,
    scram,
    shake_hands,
    start_tls,
    token,
)
from tests.waiting import eventually
from triplicate.bookie.server import doorkeeper
from triplicate.config import SecuritySettings
from triplicate.security import TlsIdentity
from triplicate.security.authority import end_point_hash
from triplicate.wire import AddRequest, AuthRequest, AuthResponse, ReadRequest, StartTlsRequest, StartTlsResponse, Status, v3

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]
START = v3.encode_request(StartTlsRequest(), 1)
GREETING = AuthRequest("sasl", b"")
ADD = AddRequest(5, 0, codec().master_key, codec().encode(0, -1, 1, b"x"))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("tls", ["offered", "required"])
def test_a_connection_is_protected_and_then_speaks_either_version(
    tmp_path: Path, tls: str, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(rig: DoorRig) -> None:
        new = await rig.connect_tls()
        assert await new.add(codec(), 0) is Status.OK
        assert await new.ask(StartTlsRequest()) == StartTlsResponse(Status.BAD_REQUEST)
        old = await rig.connect(V3Client)
        await start_tls(rig, old)
        old.__class__ = RawClient
        assert (await old.read(5, 0)).status is Status.OK
        assert await old.add(codec(), 1, b"y" * 300_000) is Status.OK
        assert rig.count("triplicate_bookie_tls_handshakes_total", outcome="done") == 2

    run_door(tmp_path, body, loop=loop, tls=tls)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("tls", ["offered", "required"])
def test_a_request_at_once_with_the_end_of_the_handshake_is_answered_inside_tls(
    tmp_path: Path, tls: str, version: ssl.TLSVersion, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(rig: DoorRig) -> None:
        context = TlsIdentity(rig.certificates.client_settings(), rig.host.clock, rig.host.trace).client_context()
        context.maximum_version = version
        session: ssl.SSLSession | None = None
        for entry_id in range(2):  # In TLS 1.2 a client sends last where it takes up an earlier session.
            with await raw_socket(*rig.bookie.address) as connection:
                accepted = v3.encode_response(StartTlsResponse(Status.OK), 1)
                await asyncio.get_running_loop().sock_sendall(connection, START)
                assert await asyncio.get_running_loop().sock_recv(connection, 1024) == accepted
                flight = TlsFlight(connection, context, "localhost", session)
                add = AddRequest(5, entry_id, codec().master_key, codec().encode(entry_id, entry_id - 1, 1, b"x"))
                await flight.shake_hands(v3.encode_request(add, 2))
                answer = await flight.receive(4)
                _, stored = v3.decode_response(await flight.receive(int.from_bytes(answer)))
                assert stored.status is Status.OK
                session = flight.tls.session
        assert flight.tls.session_reused
        assert rig.count("triplicate_bookie_tls_handshakes_total", outcome="done") == 2

    run_door(tmp_path, body, loop=loop, tls=tls)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_login_begins_at_once_with_the_end_of_the_handshake(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(rig: DoorRig) -> None:
        context = TlsIdentity(rig.certificates.client_settings(), rig.host.clock, rig.host.trace).client_context()
        with await raw_socket(*rig.bookie.address) as connection:
            await asyncio.get_running_loop().sock_sendall(connection, START)
            assert await asyncio.get_running_loop().sock_recv(connection, 1024)
            flight = TlsFlight(connection, context, "localhost")
            login = AuthRequest("triplicate-sasl", f"PLAIN\0\0writer\0{PASSWORD}".encode())
            await flight.shake_hands(v3.encode_request(login, 2) + v3.encode_request(ADD, 3))
            for _ in range(2):
                _, answer = v3.decode_response(await flight.receive(int.from_bytes(await flight.receive(4))))
                assert answer.status is Status.OK

    run_door(tmp_path, body, loop=loop, tls="required", authentication="sasl")


def test_offered_tls_may_be_done_without(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        for kind in (RawClient, V3Client):
            client = await rig.connect(kind)
            assert (await client.read(6, 0)).status is Status.NO_LEDGER
            assert await client.add(codec(), 0, b"z" * 200_000) is Status.OK
            if kind is V3Client:
                assert await client.ask(StartTlsRequest()) == StartTlsResponse(Status.BAD_REQUEST)

    run_door(tmp_path, body, tls="offered")


def test_a_bookie_without_tls_refuses_it_before_and_after_the_login(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        assert await client.ask(StartTlsRequest()) == StartTlsResponse(Status.BAD_REQUEST)
        assert await scram(client, "writer", PASSWORD)
        assert await client.ask(StartTlsRequest()) == StartTlsResponse(Status.BAD_REQUEST)

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize("authentication", ["none", "sasl"])
@pytest.mark.parametrize("kind", [RawClient, V3Client])
def test_requests_in_clear_are_refused_and_the_connection_closed_where_tls_is_required(
    tmp_path: Path, kind: type[RawClient], authentication: str
) -> None:
    async def body(rig: DoorRig) -> None:
        for request in (ADD, ReadRequest(5, 0)):
            client = await rig.connect(kind)
            client.send(request, request)
            answer = await client.answer()
            assert answer.status is Status.UNAUTHORIZED
            await client.until_closed()
            assert len(client.bodies) == 1
        assert rig.refusals("no TLS") == 2
        assert [facts["reason"] for facts in rig.traced("bookie.login_refused")] == ["no TLS", "no TLS"]
        assert rig.bookie.storage.ledgers.get(5) is None

    run_door(tmp_path, body, tls="required", authentication=authentication)


def test_a_login_in_clear_is_refused_where_tls_is_required(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        for payload in (b"SCRAM-SHA-256\0n,,n=writer,r=x", f"PLAIN\0\0writer\0{PASSWORD}".encode()):
            client = await rig.connect()
            assert (await token(client, "triplicate-sasl", payload)).status is Status.UNAUTHORIZED
            await client.until_closed()
        assert rig.refusals("no TLS") == 2

    run_door(tmp_path, body, tls="required", authentication="sasl")


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(v3.encode_request(ADD, 2), id="an add"),
        pytest.param(v3.encode_request(AuthRequest("triplicate-sasl", b"SCRAM-SHA-256\0n,,n=writer,r=x"), 2), id="a token"),
        pytest.param(v3.encode_request(AuthRequest("sasl", b"x"), 2), id="a token of Apache's plugin that is not empty"),
        pytest.param(v3.encode_request(GREETING, 2) * 2, id="two greetings"),
        pytest.param(v3.encode_request(GREETING, 2) + b"\0", id="a byte behind a greeting"),
        pytest.param(b"\0", id="one byte"),
        pytest.param(START, id="START_TLS again"),
    ],
)
def test_plain_text_behind_start_tls_ends_the_connection(tmp_path: Path, behind: bytes) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        client.send_bytes(START + behind)
        await client.until_closed()
        assert client.bodies == []
        assert rig.refusals("plain text behind START_TLS") == 1
        assert rig.bookie.storage.ledgers.get(5) is None

    run_door(tmp_path, body, tls="required", authentication="sasl", authentication_timeout_s=5.0)


def test_plain_text_that_arrives_during_the_handshake_ends_the_connection(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        client.send_bytes(START)
        assert (await client.answer()).status is Status.OK
        client.send(ADD)
        await client.until_closed()
        assert rig.refusals("TLS handshake failed") == 1
        assert rig.bookie.storage.ledgers.get(5) is None

    run_door(tmp_path, body, tls="required")


@pytest.mark.parametrize("tls", ["offered", "required"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("order", ["START_TLS first", "greeting first", "one by one"])
def test_the_greeting_of_javas_client_in_clear_is_answered_inside_tls(
    tmp_path: Path, order: str, version: int, tls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """START_TLS is a request of version 3, also of a client that speaks version 2."""
    if order == "one by one":
        monkeypatch.setattr(doorkeeper, "GREETING_GAP_S", 60.0)

    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        greeting = client.encode(GREETING) if version == 3 else RawClient.encode(client, GREETING)
        client.send_bytes(START + greeting if order == "START_TLS first" else greeting + START if order == "greeting first" else START)
        if order == "one by one":
            await eventually(lambda: any(getattr(one._handler, "_tls_txn_id", None) is not None for one in rig.bookie.connections))
            client.send_bytes(greeting[:5])
            await asyncio.sleep(0)
            client.send_bytes(greeting[5:])
        assert await client.answer() == StartTlsResponse(Status.OK)
        await protect(rig, client, TlsIdentity(rig.certificates.client_settings(), rig.host.clock, rig.host.trace))
        if version == 2:
            client.__class__ = RawClient
        challenged = await client.answer()
        assert isinstance(challenged, AuthResponse)
        assert b"md5-sess" in challenged.payload
        last = await token(client, "sasl", digest_response(challenged.payload, "writer", PASSWORD))
        assert last.payload.startswith(b"rspauth=")
        assert await client.add(codec(), 0) is Status.OK

    run_door(tmp_path, body, tls=tls, authentication="sasl")


def test_a_greeting_without_start_tls_is_refused_soon_where_tls_is_required(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        assert (await token(client, "sasl", b"")).status is Status.UNAUTHORIZED
        await client.until_closed()
        assert rig.refusals("no TLS") == 1

    run_door(tmp_path, body, tls="required", authentication="sasl", authentication_timeout_s=300.0)


def test_start_tls_within_a_login_in_clear_is_refused(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        challenged = await challenge(client)
        assert await client.ask(StartTlsRequest()) == StartTlsResponse(Status.BAD_REQUEST)
        assert (await token(client, "sasl", digest_response(challenged, "writer", PASSWORD))).status is Status.OK

    run_door(tmp_path, body, tls="offered", authentication="sasl")


def test_plain_is_accepted_inside_tls_only(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        inside = await rig.connect_tls()
        assert await plain(inside, "writer", PASSWORD) is Status.OK
        assert await inside.add(codec(), 0) is Status.OK
        for user, password in (("writer", "wrong"), ("stranger", PASSWORD)):
            wrong = await rig.connect_tls()
            assert await plain(wrong, user, password) is Status.UNAUTHORIZED
            await wrong.until_closed()
        outside = await rig.connect()
        assert await plain(outside, "writer", PASSWORD) is Status.UNAUTHORIZED
        await outside.until_closed()
        assert rig.refusals("mechanism not offered") == 1
        assert rig.refusals("wrong user or password") == 2

    run_door(tmp_path, body, tls="offered", authentication="sasl")


def test_scram_is_bound_to_the_bookies_certificate(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        end_point = end_point_hash((rig.certificates.folder / "bookie.pem").read_bytes())
        assert end_point is not None
        right = await rig.connect_tls()
        assert await scram(right, "writer", PASSWORD, end_point=end_point)
        other = await rig.connect_tls()
        assert not await scram(other, "writer", PASSWORD, end_point=bytes(32))
        # A client that could bind, and thinks that the bookie does not offer it: somebody between the two removed the offer.
        deceived = await rig.connect_tls()
        assert (await token(deceived, "triplicate-sasl", b"SCRAM-SHA-256\0y,,n=writer,r=x")).status is Status.UNAUTHORIZED

    run_door(tmp_path, body, tls="required", authentication="sasl")


def of_folder(**facts: object) -> Callable[[CertificateFolder, Path], SecuritySettings]:
    return lambda folder, _: folder.settings("client", (), **facts)  # type: ignore[arg-type]


def of_another_authority(folder: CertificateFolder, tmp_path: Path) -> SecuritySettings:
    return folder.trusting(CertificateFolder(tmp_path / "others", "another authority").settings("client", (), units=("0:admin",)))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(of_another_authority, id="of another authority"),
        pytest.param(of_folder(valid_s=DAY_S, made_s_ago=3 * DAY_S, units=("0:admin",)), id="expired"),
        pytest.param(lambda folder, _: folder.client_settings(), id="none"),
    ],
)
def test_a_client_without_a_valid_certificate_is_refused_where_one_is_required(
    tmp_path: Path, make: Callable[[CertificateFolder, Path], SecuritySettings], loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        settings = make(rig.certificates, tmp_path)
        try:
            # In TLS 1.3 the client's side of the handshake may end before the bookie has seen the certificate.
            await start_tls(rig, client, settings)
            client.send(ADD)
        except OSError:
            pass  # In TLS 1.2 the client learns of the refusal during its handshake, in TLS 1.3 behind it.
        await eventually(lambda: rig.refusals("TLS handshake failed") == 1)
        assert client.bodies[1:] == []
        assert rig.bookie.storage.ledgers.get(5) is None
        assert await (await rig.connect_tls(rig.certificates.settings("good", (), units=("0:admin",)))).add(codec(), 0) is Status.OK

    run_door(tmp_path, body, loop=loop, tls="required", client_certificates="required", authentication="certificate")


@pytest.mark.parametrize("units", [(), ("writers",), ("0:other",), ("1:admin",), ("x", "0:admin")], ids=repr)
def test_a_certificate_without_a_role_may_do_nothing(tmp_path: Path, units: tuple[str, ...]) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect_tls(rig.certificates.settings("client", (), units=units))
        assert await client.answer() == StartTlsResponse(Status.IO_ERROR)
        client.send(ADD)
        assert (await client.answer()).status is Status.UNAUTHORIZED
        assert (await token(client, "sasl", b"")).status is Status.UNAUTHORIZED
        assert rig.refusals("certificate without a role") == 1
        assert rig.bookie.storage.ledgers.get(5) is None

    run_door(tmp_path, body, tls="required", client_certificates="required", authentication="certificate")


def test_a_certificates_role_decides_what_a_connection_may_do(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        reader = await rig.connect_tls(rig.certificates.settings("reader", (), units=("0:read;1:a cluster",)))
        assert await reader.add(codec(), 0) is Status.UNAUTHORIZED
        assert (await reader.read(5, 0)).status is Status.NO_LEDGER
        operator = await rig.connect_tls(rig.certificates.settings("operator", (), units=("0:operators, guest",)))
        assert await operator.add(codec(), 0) is Status.OK

    run_door(
        tmp_path,
        body,
        tls="required",
        client_certificates="required",
        authentication="certificate",
        authorized_roles=("operators",),
    )


def test_a_certificate_or_a_user_is_enough_where_either_is(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        proven = await rig.connect_tls(rig.certificates.settings("client", (), units=("0:write",)))
        assert await proven.add(codec(), 0) is Status.OK
        for settings in (None, rig.certificates.settings("another", (), units=("no role",))):
            user = await rig.connect_tls(settings)
            client_add = await user.ask(ReadRequest(5, 0))
            assert client_add.status is Status.UNAUTHORIZED
            assert await scram(user, "writer", PASSWORD)
            assert (await user.read(5, 0)).status is Status.OK

    run_door(tmp_path, body, tls="required", client_certificates="requested", authentication="either")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_handshake_that_does_not_go_on_ends_in_time(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(rig: DoorRig) -> None:
        silent, garbage = await rig.connect(), await rig.connect()
        for client in (silent, garbage):
            client.send_bytes(START)
            assert (await client.answer()).status is Status.OK
        garbage.send_bytes(b"\x16\x03\x01\x40\x00" + bytes(64 * 1024))
        await silent.until_closed()
        await garbage.until_closed()
        assert rig.count("triplicate_bookie_tls_handshakes_total", outcome="failed") >= 1

    run_door(tmp_path, body, loop=loop, tls="required", authentication_timeout_s=3.0)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("by", ["stop", "failure", "peer"])
def test_a_bookie_that_ends_during_a_handshake_leaves_no_connection(
    tmp_path: Path, by: str, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        client.send_bytes(START)
        assert (await client.answer()).status is Status.OK
        await eventually(lambda: "TLS handshake" in rig.bookie.parts.scope.tasks)
        if by == "peer":
            client.transport.abort()
            await eventually(lambda: not len(rig.bookie.connections))
        elif by == "failure":
            rig.bookie.connections.close_all()
            await client.until_closed()
        # `run_door` stops the bookie, and finds no connection afterwards.

    run_door(tmp_path, body, loop=loop, tls="required", authentication_timeout_s=60.0)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_paused_connection_that_the_client_has_ended_goes_with_the_bookie(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect_tls()
        assert (await client.read(5, 0)).status is Status.NO_LEDGER
        (connection,) = rig.bookie.connections
        connection.pause_frames()
        client.transport.abort()
        # asyncio shows the end nowhere as long as the connection is paused; these turns of the loop are enough to process it.
        await asyncio.sleep(0.05)
        await rig.bookie.stop()
        await eventually(lambda: connection.is_gone)

    run_door(tmp_path, body, loop=loop, tls="required")


def test_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        async def serial() -> object:
            client = await rig.connect_tls()
            shown = client.transport.get_extra_info("peercert")
            return shown["serialNumber"]

        first = await serial()
        rig.certificates.settings("bookie")
        deadline = asyncio.get_running_loop().time() + 20
        while await serial() == first:
            assert asyncio.get_running_loop().time() < deadline

    run_door(
        tmp_path,
        body,
        tls="required",
        handshakes_per_s=100_000,
        security=lambda folder: dataclasses.replace(folder.settings("bookie"), reload_interval_s=0.1),
    )


def test_the_registration_names_tls(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        info = await rig.bookie.parts.metadata.bookies.resolve("bookie-1")
        assert info.endpoints[0].extensions == ("tls",)

    run_door(tmp_path, body, tls="offered")


def test_the_version_is_at_least_1_2(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        client.send_bytes(START)
        await client.answer()
        with pytest.raises(OSError):
            await shake_hands(rig, client, context_of_old_tls())
        await eventually(lambda: rig.refusals("TLS handshake failed") == 1)

    run_door(tmp_path, body, tls="required")
