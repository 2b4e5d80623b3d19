"""Logins at a bookie's door over both protocol versions: who is admitted, and what a connection may do before."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from scramp import ScramClient

from tests.unit.bookie.bookie_rig import RawClient, V3Client
from tests.unit.bookie.server.door_rig import PASSWORD, DoorRig, challenge, codec, digest, digest_response, run_door, scram, token
from tests.waiting import eventually
from triplicate.security import BookieRole, new_user, read_users, write_users
from triplicate.wire import (
    AddRequest,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    BookieInfoRequest,
    ForceRequest,
    ListEntriesRequest,
    ReadLacRequest,
    ReadRequest,
    Request,
    Status,
    WriteLacRequest,
    v3,
)

VERSIONS = [pytest.param(RawClient, id="v2"), pytest.param(V3Client, id="v3")]
ADD = AddRequest(5, 0, codec().master_key, codec().encode(0, -1, 1, b"x"))


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_user_logs_in_by_scram_and_writes_and_reads(tmp_path: Path, kind: type[RawClient]) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect(kind)
        assert await scram(client, "writer", PASSWORD)
        assert await client.add(codec(), 0) is Status.OK
        assert (await client.read(5, 0)).status is Status.OK
        assert rig.count("triplicate_bookie_logins_total", mechanism="SCRAM-SHA-256") == 1
        assert rig.count("triplicate_bookie_unauthenticated_connections") == 0

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_user_logs_in_by_digest_md5_as_javas_client_does(tmp_path: Path, kind: type[RawClient]) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect(kind)
        assert await digest(client, "writer", PASSWORD)
        # Java's client sends an empty token after the bookie's proof.
        assert await token(client, "sasl", b"") == AuthResponse(Status.OK, v3.AUTH_DISABLED, b"")
        assert await client.add(codec(), 0) is Status.OK

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize(
    "request_",
    [
        ADD,
        ReadRequest(5, 0),
        ReadRequest(5, 0, fence=True, master_key=codec().master_key),
        WriteLacRequest(5, 0, codec().master_key, codec().encode_lac(0)),
        ReadLacRequest(5),
        ForceRequest(5),
        BookieInfoRequest(),
        ListEntriesRequest(5),
        AuthRequest("another plugin", b"x"),
        AuthRequest("", b""),
    ],
    ids=lambda request: type(request).__name__,
)
def test_before_the_login_every_request_of_version_3_is_unauthorized_and_the_connection_stays(tmp_path: Path, request_: Request) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        for number in range(2):
            frame = v3.encode_request(request_, 7 + number)
            client.send_bytes(frame)
            # The request's header and the status, and no part of the operation.
            assert await client.body(number) == v3.encode_unauthenticated(v3.decode_request(frame[4:]))[4:]
            await client.answer()
        assert not client.closed
        assert sum(rig.refusals(reason) for reason in ("request before the login", "other plugin")) == 1
        assert rig.bookie.storage.ledgers.get(5) is None
        assert await scram(client, "writer", PASSWORD)

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize(
    "request_", [ADD, ReadRequest(5, 0), BatchReadRequest(5, 0, 1, 1, 100)], ids=lambda request: type(request).__name__
)
def test_before_the_login_requests_of_version_2_get_their_own_answer(tmp_path: Path, request_: Request) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect(RawClient)
        assert await client.ask(request_) == v3.refusal_of(request_, Status.UNAUTHORIZED)
        assert rig.bookie.storage.ledgers.get(5) is None
        assert await scram(client, "writer", PASSWORD)

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize("kind", VERSIONS)
def test_an_add_before_the_login_stores_nothing(tmp_path: Path, kind: type[RawClient]) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect(kind)
        assert (await client.ask(ADD)).status is Status.UNAUTHORIZED
        assert rig.bookie.storage.ledgers.get(5) is None

    run_door(tmp_path, body, authentication="sasl")


def test_another_plugin_closes_a_connection_of_version_2(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect(RawClient)
        client.send(AuthRequest("another plugin", b"x"))
        await client.until_closed()
        assert client.bodies == []

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize("kind", VERSIONS)
@pytest.mark.parametrize("user", ["writer", "stranger"])
def test_a_wrong_password_and_an_unknown_user_are_refused_alike(tmp_path: Path, kind: type[RawClient], user: str) -> None:
    async def body(rig: DoorRig) -> None:
        for login in (scram, digest):
            client = await rig.connect(kind)
            assert not await login(client, user, "wrong")
            await client.until_closed()
        assert rig.refusals("wrong user or password") == 2
        assert [facts["user"] for facts in rig.traced("bookie.login_refused")] == ["writer" if user == "writer" else ""] * 2
        assert "wrong" not in str([{**facts, "reason": ""} for facts in rig.traced("bookie.login_refused")])

    run_door(tmp_path, body, authentication="sasl")


def test_the_last_version_2_login_keeps_version_3_out(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect(RawClient)
        assert await scram(client, "writer", PASSWORD)
        client.send_bytes(v3.encode_request(ReadRequest(5, 0), 1))
        await client.until_closed()

    run_door(tmp_path, body, authentication="sasl")


def test_requests_behind_the_last_token_are_served_in_order(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        challenged = await challenge(client)
        client.send(AuthRequest("sasl", digest_response(challenged, "writer", PASSWORD)), ADD, ReadRequest(5, 0))
        answers = [await client.answer() for _ in range(3)]
        assert [answer.status for answer in answers] == [Status.OK] * 3
        assert isinstance(answers[0], AuthResponse)

    run_door(tmp_path, body, authentication="sasl")


def test_a_removed_user_is_cut_off_and_a_changed_one_gets_its_new_rights(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        writer, reader = await rig.login("writer"), await rig.login("reader")
        assert await reader.add(codec(), 0) is Status.UNAUTHORIZED
        users = read_users(str(rig.users_file), "users")
        del users["writer"]
        users["reader"] = dataclasses.replace(users["reader"], roles=(BookieRole.WRITE,))
        write_users(str(rig.users_file), users)
        await writer.until_closed()
        assert await reader.add(codec(), 0) is Status.OK
        assert (await reader.read(5, 0)).status is Status.UNAUTHORIZED
        assert rig.traced("security.users_renewed")
        again = await rig.connect()
        assert not await scram(again, "writer", PASSWORD)

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize("change", ["removed", "demoted", "another password"])
def test_a_login_that_began_before_its_user_was_changed_gets_no_more_than_one_that_begins_now(tmp_path: Path, change: str) -> None:
    """A holder of a stolen password keeps a half-finished login pending, and so would outlive every revocation."""

    async def body(rig: DoorRig) -> None:
        client = await rig.connect()
        login = ScramClient(["SCRAM-SHA-256"], "writer", PASSWORD, c_nonce="client-nonce")
        first = await token(client, "triplicate-sasl", f"SCRAM-SHA-256\0{login.get_client_first()}".encode())
        users = read_users(str(rig.users_file), "users")
        if change == "removed":
            del users["writer"]
        elif change == "demoted":
            users["writer"] = dataclasses.replace(users["writer"], roles=(BookieRole.READ,))
        else:
            users["writer"] = new_user("writer", "another password", users["writer"].roles, bytes(16))
        write_users(str(rig.users_file), users)
        await eventually(lambda: bool(rig.traced("security.users_renewed")))
        login.set_server_first(first.payload.decode())
        last = await token(client, "triplicate-sasl", login.get_client_final().encode())
        if change == "demoted":
            assert last.status is Status.OK
            assert await client.add(codec(), 0) is Status.UNAUTHORIZED
        else:
            assert last.status is Status.UNAUTHORIZED
            await client.until_closed()
            assert rig.refusals("user changed during the login") == 1

    run_door(tmp_path, body, authentication="sasl")


def test_a_damaged_file_of_users_leaves_the_users_of_before(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        rig.users_file.write_text('[users."writer"]\nscram = "secret"\n')
        await eventually(lambda: bool(rig.traced("security.users_not_renewed")))
        assert "secret" not in str(rig.traced("security.users_not_renewed"))
        await rig.login("writer")

    run_door(tmp_path, body, authentication="sasl")
