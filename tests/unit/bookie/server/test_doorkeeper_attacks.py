"""Attacks on a bookie's door: replayed and oversized tokens, floods of half-open connections, slow logins, guesses."""

from __future__ import annotations

import asyncio
import dataclasses
from base64 import b64encode
from pathlib import Path

import pytest

from tests.unit.bookie.bookie_rig import RawClient, V3Client
from tests.unit.bookie.server.door_rig import (
    PASSWORD,
    DoorRig,
    challenge,
    codec,
    digest,
    digest_response,
    plain,
    run_door,
    scram,
    start_tls,
    token,
)
from tests.waiting import eventually
from triplicate.bookie.server.doorkeeper import BYTES_MAX
from triplicate.security import digest_md5, read_users, write_users
from triplicate.wire import AddRequest, AddResponse, AuthRequest, StartTlsRequest, Status, v3

FLOOD = "too many connections that are not admitted"


def test_a_recorded_login_is_worthless_on_another_connection(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        spied = await rig.connect()
        first = digest_response(await challenge(spied), "writer", PASSWORD)
        assert (await token(spied, "sasl", first)).status is Status.OK
        replayed = await rig.connect()
        await challenge(replayed)
        assert (await token(replayed, "sasl", first)).status is Status.UNAUTHORIZED
        await replayed.until_closed()

        honest = await rig.connect()
        assert await scram(honest, "writer", PASSWORD)
        final = v3.decode_request(honest.encode(AuthRequest("triplicate-sasl", b""))[4:])
        assert final.request is not None
        again = await rig.connect()
        await token(again, "triplicate-sasl", b"SCRAM-SHA-256\0n,,n=writer,r=client-nonce")
        proof = b64encode(bytes(32)).decode()
        answer = await token(again, "triplicate-sasl", f"c=biws,r=client-nonce-of-another-login,p={proof}".encode())
        assert answer.status is Status.UNAUTHORIZED
        assert rig.refusals("malformed token") == 2

    run_door(tmp_path, body, authentication="sasl")


def test_a_token_after_a_failed_login_has_no_effect(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        challenged = await challenge(client)
        wrong, right = (digest_response(challenged, "writer", password) for password in ("wrong", PASSWORD))
        client.send(
            AuthRequest("sasl", wrong), AuthRequest("sasl", right), AddRequest(5, 0, codec().master_key, codec().encode(0, -1, 1, b"x"))
        )
        assert (await client.answer()).status is Status.UNAUTHORIZED
        await client.until_closed()
        assert len(client.bodies) == 2
        assert rig.bookie.storage.ledgers.get(5) is None

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": b'"another"'},
        {"realm": b'"another"'},
        {"realm": b""},
        {"digest_uri": b'"zookeeper/bookkeeper"'},
        {"authzid": b'"boss"'},
        {"nc": b"00000002"},
        {"qop": b"auth-int"},
        {"charset": b"latin-1"},
        {"response": b""},
        {"response": b"0" * 32},
        {"cnonce": b'"another"'},
        {"username": b'"boss"'},
        {"username": b'"\xff"'},
    ],
    ids=str,
)
def test_a_response_that_differs_in_any_part_is_refused(tmp_path: Path, changes: dict[str, bytes]) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        assert not await digest(client, "writer", PASSWORD, **changes)
        await client.until_closed()

    run_door(tmp_path, body, authentication="sasl")


def test_a_prefix_of_the_proof_is_no_proof(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        for cut in (slice(0, 31), slice(0, 16), slice(0, 1)):
            client = await rig.connect()
            response = digest_response(await challenge(client), "writer", PASSWORD)
            value = digest_md5.parse_directives(response)["response"]
            shorter = response.replace(b"response=" + value, b"response=" + value[cut])
            assert (await token(client, "sasl", shorter)).status is Status.UNAUTHORIZED

    run_door(tmp_path, body, authentication="sasl")


def test_a_user_without_a_hash_cannot_use_digest_md5(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        users = read_users(str(rig.users_file), "users")
        users["writer"] = dataclasses.replace(users["writer"], password_hash=None)
        write_users(str(rig.users_file), users)
        await eventually(lambda: bool(rig.traced("security.users_renewed")))
        client = await rig.connect()
        challenged = await challenge(client)
        # The proof for the hash that stands in for the missing one.
        facts = digest_md5.parse_directives(challenged)
        proof = digest_md5.proof(bytes(16), nonce=facts["nonce"], client_nonce=b64encode(b"client"), authorization_id=b"writer")
        response = digest_response(challenged, "writer", "any", response=proof)
        assert (await token(client, "sasl", response)).status is Status.UNAUTHORIZED
        assert await scram(await rig.connect(), "writer", PASSWORD)

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"SCRAM-SHA-256",
        b"GSSAPI\0",
        b"\xff\0",
        b"SCRAM-SHA-256\0",
        b"SCRAM-SHA-256\0n,,n=,r=x",
        b"SCRAM-SHA-256\0n,,n=a=b,r=x",
        b"SCRAM-SHA-256\0n,a=boss,n=writer,r=x",
        b"SCRAM-SHA-256\0p=tls-server-end-point,,n=writer,r=x",
        b"SCRAM-SHA-256-PLUS\0p=tls-server-end-point,,n=writer,r=x",
        b"SCRAM-SHA-256\0n,,m=more,n=writer,r=x",
        b"SCRAM-SHA-256\0n,,n=\xff,r=x",
        b"SCRAM-SHA-256\0" + b"x" * 5000,
        b"PLAIN\0\0writer\0" + PASSWORD.encode(),
    ],
    ids=lambda payload: repr(payload[:40]),
)
def test_malformed_tokens_and_other_mechanisms_are_refused(tmp_path: Path, payload: bytes) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        answer = await token(client, "triplicate-sasl", payload)
        if answer.status is Status.OK:
            assert payload == b"SCRAM-SHA-256\0n,,n=,r=x", "an empty name is that of an unknown user"
            return
        await client.until_closed()
        assert rig.refusals("malformed token") + rig.refusals("mechanism not offered") == 1

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize("kind", [RawClient, V3Client])
def test_a_large_add_before_the_login_is_answered_and_ends_the_connection(tmp_path: Path, kind: type[RawClient]) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect(kind)
        entry = codec().encode(0, -1, 100_000, b"x" * 100_000)
        client.send(AddRequest(5, 0, codec().master_key, entry))
        assert await client.answer() == AddResponse(Status.UNAUTHORIZED, 5, 0)
        await client.until_closed()
        assert rig.refusals("too many bytes") == 1

    run_door(tmp_path, body, authentication="sasl")


def test_the_bytes_before_the_login_are_limited(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client, endless = await rig.connect(), await rig.connect()
        frame = client.encode(AuthRequest("no plugin", b"x" * 1000))
        client.send_bytes(frame * (BYTES_MAX // len(frame) + 2))
        await client.until_closed()
        endless.send_bytes((1 << 20).to_bytes(4, "big") + b"\0" * BYTES_MAX)
        await endless.until_closed()
        assert rig.refusals("too many bytes") == 2

    run_door(tmp_path, body, authentication="sasl")


def test_a_flood_of_idle_connections_is_bounded_and_does_not_keep_honest_clients_out(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        served = await rig.login("writer")
        for _ in range(60):
            await rig.connect()
            assert rig.count("triplicate_bookie_unauthenticated_connections") <= 20
        assert await scram(await rig.connect(), "writer", PASSWORD)
        await eventually(lambda: len(rig.bookie.connections) <= 22)
        assert rig.refusals(FLOOD) >= 40
        assert await served.add(codec(), 0) is Status.OK

    run_door(tmp_path, body, authentication="sasl", unauthenticated_connections=20, authentication_timeout_s=300.0)


def test_a_flood_from_one_address_is_bounded_by_the_limit_of_an_address(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        for _ in range(20):
            await rig.connect()
        await eventually(lambda: rig.refusals(FLOOD) == 15)
        assert rig.count("triplicate_bookie_unauthenticated_connections") == 5

    run_door(tmp_path, body, authentication="sasl", unauthenticated_connections_per_address=5, authentication_timeout_s=300.0)


def test_a_connection_that_does_not_log_in_is_closed_in_time(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        idle, begun = await rig.connect(), await rig.connect()
        await challenge(begun)
        await idle.until_closed()
        await begun.until_closed()
        assert rig.refusals("too slow") == 2
        admitted = await rig.login("writer")
        later = await rig.connect()
        await later.until_closed()
        assert await admitted.add(codec(), 0) is Status.OK

    run_door(tmp_path, body, authentication="sasl", authentication_timeout_s=3.0)


def test_handshakes_beyond_the_rate_wait_their_turn(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        started = rig.host.clock.monotonic()
        clients = [await rig.connect() for _ in range(8)]
        await asyncio.gather(*(start_tls(rig, client) for client in clients))
        # 5 at once, and 3 more at 5 a second.
        assert rig.host.clock.monotonic() - started >= 0.55
        assert rig.count("triplicate_bookie_tls_handshakes_total", outcome="done") == 8

    run_door(tmp_path, body, tls="required", handshakes_per_s=5)


def test_connections_that_were_crowded_out_keep_no_other_handshake_waiting(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        await start_tls(rig, await rig.connect())  # The only handshake of this second.
        for _ in range(50):
            client = await rig.connect()
            client.send(StartTlsRequest())
        await eventually(lambda: rig.refusals("too many connections that are not admitted") >= 47)
        # Nor do they cost a task and its memory until their turn.
        await eventually(lambda: len(asyncio.all_tasks()) < 30)
        started = rig.host.clock.monotonic()
        await start_tls(rig, await rig.connect())
        assert rig.host.clock.monotonic() - started < 5

    run_door(tmp_path, body, tls="required", handshakes_per_s=1, authentication_timeout_s=60.0, unauthenticated_connections_per_address=2)


def test_a_handshake_whose_turn_would_come_too_late_is_refused(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        clients = [await rig.connect() for _ in range(12)]
        for client in clients:
            client.send(StartTlsRequest())
        await eventually(lambda: rig.refusals("too many handshakes") >= 8)
        assert sum(bool(client.bodies) for client in clients) <= 4

    run_door(tmp_path, body, tls="required", handshakes_per_s=1, authentication_timeout_s=2.0)


def test_guesses_are_slowed_down_and_the_right_password_is_not_refused(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        clock, took = rig.host.clock, []
        for _ in range(5):
            begun = clock.monotonic()
            assert not await digest(await rig.connect(), "writer", "guess")
            took.append(clock.monotonic() - begun)
        # After 1, 2, 3 and 4 failures: 50, 100, 200, 400 ms, less what is forgiven in between.
        assert took[4] >= 0.25
        assert took[3] >= 0.12
        begun = clock.monotonic()
        assert await scram(await rig.connect(), "writer", PASSWORD)
        assert clock.monotonic() - begun >= 0.5
        assert rig.refusals("wrong user or password") == 5

    run_door(tmp_path, body, authentication="sasl")


def test_passwords_that_wait_for_the_worker_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: DoorRig) -> None:
        door = rig.bookie.parts.door
        clients = [await rig.connect_tls() for _ in range(2)]
        monkeypatch.setattr("triplicate.bookie.server.door.CHECKS_MAX", 0)
        assert await plain(clients[0], "writer", PASSWORD) is Status.UNAUTHORIZED
        assert rig.refusals("too many logins") == 1
        monkeypatch.setattr("triplicate.bookie.server.door.CHECKS_MAX", 1)
        assert await plain(clients[1], "writer", PASSWORD) is Status.OK
        assert door.has_room_for_check

    run_door(tmp_path, body, tls="required", authentication="sasl")


def test_a_client_that_leaves_while_its_password_is_compared_leaves_nothing(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect_tls()
        client.send(AuthRequest("triplicate-sasl", f"PLAIN\0\0writer\0{PASSWORD}".encode()))
        client.transport.abort()
        await eventually(lambda: not len(rig.bookie.connections))
        assert rig.count("triplicate_bookie_unauthenticated_connections") == 0

    run_door(tmp_path, body, tls="required", authentication="sasl")
