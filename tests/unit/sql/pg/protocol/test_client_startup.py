"""The beginning of a connection: TLS, and clients that have none."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tests.certificates import DAY_S, CertificateFolder, context_of_old_tls
from tests.tls_flight import TlsFlight, raw_socket
from tests.unit.sql.pg.login_rig import SSL_REQUEST, Door, run_door, startup
from tests.unit.sql.pg.raw_client import query
from tests.waiting import eventually
from triplicate.config import SecuritySettings
from triplicate.replica.failure_detector import PROBE
from triplicate.runtime import real_host
from triplicate.security import TlsIdentity
from triplicate.sql.pg import ServerLimits
from triplicate.sql.pg.protocol import wire

GSS_REQUEST = struct.pack(">ii", 8, 80877104)


def test_a_client_without_tls_is_refused_where_tls_is_required(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        client = await door.raw(encrypted=False)
        await client.send(startup())
        sqlstate, text = await client.error()
        assert sqlstate == "28000"
        assert "accepts connections with TLS only" in text
        assert await client.answer() == ("", b"")
        client.close()
        assert "accepts connections with TLS only" in await door.error(sslmode="disable")
        assert door.refused("plain_text") == 2
        assert {(one["event"], one["tls"]) for one in door.events.all} == {("login refused", None)}

    run_door(tmp_path, body)


def test_requests_for_tls_are_refused_where_it_is_off(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        assert "server does not support SSL" in await door.error()
        async with await door.psycopg(sslmode="prefer") as connection:
            answer = await connection.execute("show ssl")
            assert await answer.fetchone() == ("off",)

    run_door(tmp_path, body, tls="off")


def test_a_client_of_a_later_minor_version_of_the_protocol_goes_on_with_ours(tmp_path: Path) -> None:
    assert wire.negotiate_protocol_version(["_pq_.a", "_pq_.b"]) == b"v\0\0\0\x1a\0\3\0\0\0\0\0\2_pq_.a\0_pq_.b\0"

    async def body(door: Door) -> None:
        async with await door.psycopg(sslmode="disable", max_protocol_version="latest") as connection:
            assert await (await connection.execute("select 1")).fetchone() == (1,)

    run_door(tmp_path, body, tls="off")


def test_what_is_sent_in_the_clear_behind_a_request_for_tls_is_not_taken_for_encrypted(tmp_path: Path) -> None:
    """CVE-2021-23214: somebody between client and server adds a statement, which the server would run after the login."""

    async def body(door: Door) -> None:
        client = await door.raw(encrypted=False)
        await client.send(SSL_REQUEST + startup() + query("drop table t"))
        sqlstate, text = await client.error()
        assert (sqlstate, text[:43]) == ("08P01", "received unencrypted data after SSL request")
        assert await client.answer() == ("", b"")
        client.close()
        assert door.refused("protocol") == 1
        assert not door.database.sessions

    run_door(tmp_path, body)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_first_packet_at_once_with_the_end_of_the_handshake_is_answered_inside_tls(
    tmp_path: Path, version: ssl.TLSVersion, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(door: Door) -> None:
        context = TlsIdentity(door.folder.client_settings(), real_host("client").clock, lambda kind, /, **facts: None).client_context()
        context.maximum_version = version
        session: ssl.SSLSession | None = None
        for _ in range(2):  # In TLS 1.2 a client sends last where it takes up an earlier session.
            with await raw_socket("127.0.0.1", door.port) as connection:
                await asyncio.get_running_loop().sock_sendall(connection, SSL_REQUEST)
                assert await asyncio.get_running_loop().sock_recv(connection, 2) == b"S"
                flight = TlsFlight(connection, context, "localhost", session)
                await flight.shake_hands(startup())
                head = await flight.receive(9)
                assert (head[:1], head[5:]) == (b"R", struct.pack(">i", 10))
                session = flight.tls.session
        assert flight.tls.session_reused

    run_door(tmp_path, body, loop=loop)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_cancel_request_of_a_client_that_leaves_at_once_interrupts_a_statement(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(door: Door) -> None:
        client = await door.raw()
        await client.log_in()
        while (answer := await client.answer())[0] != "K":
            assert answer[0] in "RS"
        (session,) = door.database.sessions
        cancelled = []
        session.cancel = lambda: cancelled.append(True)  # type: ignore[method-assign]
        context = TlsIdentity(door.folder.client_settings(), real_host("client").clock, lambda kind, /, **facts: None).client_context()
        with await raw_socket("127.0.0.1", door.port) as connection:
            await asyncio.get_running_loop().sock_sendall(connection, SSL_REQUEST)
            assert await asyncio.get_running_loop().sock_recv(connection, 2) == b"S"
            flight = TlsFlight(connection, context, "localhost")
            await flight.shake_hands(struct.pack(">ii", 16, 80877102) + answer[1], says_goodbye=True)
            await eventually(lambda: bool(cancelled))
        client.close()

    run_door(tmp_path, body, loop=loop)


def test_peers_probe_a_server_that_requires_tls(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        client = await door.raw(encrypted=False)
        for _ in range(3):
            await client.send(PROBE)
            assert await client.reader.readexactly(1) == b"N"
        client.close()

    run_door(tmp_path, body)


def test_encryption_by_gssapi_is_refused_and_tls_follows(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        client = await door.raw(encrypted=False)
        await client.send(GSS_REQUEST)
        assert await client.reader.readexactly(1) == b"N"
        await client.send(SSL_REQUEST)
        assert await client.reader.readexactly(1) == b"S"
        client.close()

    run_door(tmp_path, body)


def test_tls_is_not_begun_within_tls(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        client = await door.raw()
        await client.send(SSL_REQUEST)
        assert (await client.error())[0] == "0A000"
        client.close()

    run_door(tmp_path, body)


def test_an_old_version_of_tls_is_refused(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        client = await door.raw(encrypted=False)
        await client.send(SSL_REQUEST)
        assert await client.reader.readexactly(1) == b"S"
        with pytest.raises(OSError):
            await client.writer.start_tls(context_of_old_tls())
        await eventually(lambda: door.refused("tls") == 1)
        client.close()

    run_door(tmp_path, body)


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", startup(), b"\x16\x03\x01\xff\xff" + 500 * b"\0"])
def test_a_handshake_that_is_none_ends_the_connection(tmp_path: Path, sent: bytes) -> None:
    async def body(door: Door) -> None:
        client = await door.raw(encrypted=False)
        await client.send(SSL_REQUEST)
        assert await client.reader.readexactly(1) == b"S"
        await client.send(sent)
        while await client.reader.read(4096):
            continue  # An alert of TLS.
        client.close()
        await eventually(lambda: door.refused("tls") == 1)
        assert door.server.connections.count == 0
        async with await door.psycopg():
            pass

    run_door(tmp_path, body)


def test_a_client_that_does_not_shake_hands_is_closed_in_time(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        client = await door.raw(encrypted=False)
        await client.send(SSL_REQUEST)
        assert await client.reader.read() == b"S"
        client.close()
        await eventually(lambda: door.server.connections.count == 0)
        assert door.refused("time") + door.refused("tls") >= 1

    run_door(tmp_path, body, ServerLimits(login_s=0.3))


def test_a_client_that_does_not_answer_is_closed_in_time(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        silent, asked = await door.raw(), await door.raw()
        await asked.begin()
        for client in (silent, asked):
            assert await client.answer() == ("", b"")
            client.close()
        assert door.refused("time") == 2

    run_door(tmp_path, body, ServerLimits(login_s=0.3))


def test_clients_verify_the_server(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        other = CertificateFolder(tmp_path / "other")
        assert "certificate verify failed" in await door.error(sslrootcert=str(other.ca_file))
        assert "server certificate" in await door.error(host="localhost.localdomain", hostaddr="127.0.0.1")
        async with await door.psycopg(host="127.0.0.1"):
            pass

    run_door(tmp_path, body)


@pytest.mark.parametrize(
    ("rule", "shown", "is_accepted"),
    [
        ("none", None, True),
        ("requested", None, True),
        ("requested", "anna", True),
        ("requested", "foreign", False),
        ("required", None, False),
        ("required", "berta", True),
        ("required", "foreign", False),
        ("required", "expired", False),
        ("role", "anna", True),
        ("role", "berta", False),
        ("role", None, False),
    ],
)
def test_certificates_of_clients_are_demanded_by_the_rule(tmp_path: Path, rule: str, shown: str | None, is_accepted: bool) -> None:
    async def body(door: Door) -> None:
        def certificate() -> SecuritySettings:
            if shown == "foreign":
                return CertificateFolder(tmp_path / "other").settings("anna", ())
            if shown == "expired":
                return door.folder.settings("anna", (), made_s_ago=2 * DAY_S, valid_s=DAY_S)
            return door.folder.settings(shown or "", ())

        files = certificate() if shown else None
        options = {"sslcert": files.certificate_file, "sslkey": files.key_file} if files else {"sslcert": str(tmp_path / "none")}
        if is_accepted:
            async with await door.psycopg(**options):
                pass
            return
        await door.error(**options)
        if rule == "role" and shown == "berta":
            assert door.refused("certificate") == 1
        else:
            await eventually(lambda: door.refused("tls") == 1)
        assert "login accepted" not in [one["event"] for one in door.events.all]

    run_door(tmp_path, body, client_certificates=rule)


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_cancel_request_interrupts_a_statement(tmp_path: Path, encrypted: bool) -> None:
    """In the clear too: libpq before version 17 has no other."""

    async def body(door: Door) -> None:
        client = await door.raw()
        await client.log_in()
        while (answer := await client.answer())[0] != "K":
            assert answer[0] in "RS"
        (session,) = door.database.sessions
        cancelled = []
        session.cancel = lambda: cancelled.append(True)  # type: ignore[method-assign]
        for key in (bytes(8), answer[1]):
            request = await door.raw(encrypted=encrypted)
            await request.send(struct.pack(">ii", 16, 80877102) + key)
            assert await request.answer() == ("", b"")
            assert bool(cancelled) == (key == answer[1])
            request.close()
        client.close()

    run_door(tmp_path, body)


def test_large_answers_and_questions_pass_through_tls(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        text = "x" * 3_000_000
        async with await door.psycopg() as connection:
            answer = await connection.execute("select %s::text || 'y'", (text,))
            assert await answer.fetchone() == (text + "y",)

    run_door(tmp_path, body)


def test_a_renewed_certificate_serves_new_connections_with_their_own_binding(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        async with await door.psycopg(channel_binding="require") as before:
            door.folder.settings("node")
            await asyncio.sleep(0.15)  # The identity looks at its files at most once in this time.
            for _ in range(2):
                async with await door.psycopg(channel_binding="require"):
                    pass
            assert "security.certificate_renewed" in [kind for kind, _ in door.traces]
            await before.execute("select 1")

    run_door(tmp_path, body)
