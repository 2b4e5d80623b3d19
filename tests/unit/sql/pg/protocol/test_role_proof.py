"""Passwords: what proves a role, and what does not."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.sql.pg.login_rig import PASSWORD, VERIFIER, Door, initial, message, proof, run_door
from triplicate.security import ScramVerifier, end_point_hash
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.pg import ServerLimits

WRONG = ("28P01", 'password authentication failed for user "{}"')


def test_a_password_proves_its_role_which_the_session_has(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        async with await door.psycopg() as connection:
            answer = await connection.execute("select current_user, session_user, user, current_role")
            assert await answer.fetchone() == ("anna",) * 4
            answer = await connection.execute("show session_authorization")
            assert await answer.fetchone() == ("anna",)
            answer = await connection.execute("show ssl")
            assert await answer.fetchone() == ("on",)
        (client,) = door.database.clients
        assert (client.role, client.database, client.address, client.is_authenticated) == ("anna", "shop", "127.0.0.1", True)
        assert client.tls == "TLSv1.3"

    run_door(tmp_path, body)


@pytest.mark.parametrize("binding", ["disable", "prefer", "require"])
def test_libpq_logs_in_with_and_without_channel_binding(tmp_path: Path, binding: str) -> None:
    async def body(door: Door) -> None:
        async with await door.psycopg(channel_binding=binding):
            method = "SCRAM-SHA-256" if binding == "disable" else "SCRAM-SHA-256-PLUS"
            assert [(one["event"], one["method"]) for one in door.events.all] == [("login accepted", method)]

    run_door(tmp_path, body)


def test_a_password_proves_its_role_in_the_clear_too(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        async with await door.psycopg(sslmode="disable") as connection:
            answer = await connection.execute("show ssl")
            assert await answer.fetchone() == ("on",)
        client = await door.raw(encrypted=False)
        assert await client.begin() == ["SCRAM-SHA-256"]
        client.close()

    run_door(tmp_path, body, tls="offered")


@pytest.mark.parametrize("case", ["wrong password", "unknown role", "no password set", "role of another database", "unknown database"])
def test_who_has_not_the_password_learns_nothing_of_the_role(tmp_path: Path, case: str) -> None:
    async def body(door: Door) -> None:
        door.database.roles["empty"] = RoleLogin("empty", None)
        user, database = {
            "wrong password": ("anna", "shop"),
            "unknown role": ("nobody", "shop"),
            "no password set": ("empty", "shop"),
            "role of another database": ("anna", "other"),
            "unknown database": ("anna", "nowhere"),
        }[case]
        salts = set()
        for _ in range(2):
            client = await door.raw()
            assert await client.begin(user, database) == ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]
            challenge = await client.challenge()
            nonce, salt, iterations = challenge.split(",")
            assert nonce.startswith("r=clientnonce")
            assert len(nonce) == len("r=clientnonce") + 24
            assert (len(salt), iterations) == (26, "i=4096")
            salts.add(salt)
            password = PASSWORD if case != "wrong password" else "correct horse battery"
            await client.send(proof(challenge, password))
            assert await client.error() == (WRONG[0], WRONG[1].format(user))
            assert await client.answer() == ("", b"")
            client.close()
        assert len(salts) == 1, "a salt that changes betrays that the role does not exist"
        assert door.refused("password") == 2
        assert not door.database.sessions

    run_door(tmp_path, body)


def test_an_unknown_role_takes_as_long_as_a_wrong_password(tmp_path: Path) -> None:
    """Both are answered after the same delay, and do the same computations: the test sees large differences only."""

    async def body(door: Door) -> None:
        async def seconds(user: str) -> float:
            client = await door.raw()
            await client.begin(user)
            challenge = await client.challenge()
            began = time.perf_counter()
            await client.send(proof(challenge, "wrong"))
            await client.error()
            client.close()
            return time.perf_counter() - began

        # The delay doubles with each failure, so the second one is longer if both are counted. The first is forgiven bit by bit.
        begun = time.perf_counter()
        known, unknown = await seconds("anna"), await seconds("nobody")
        forgiven = (time.perf_counter() - begun) / ServerLimits().failed_login_s
        assert 0.1 <= known < 1
        assert 0.2 / 2**forgiven <= unknown < 1

    run_door(tmp_path, body)


def test_a_right_that_is_missing_is_told_only_to_the_owner_of_the_password(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        door.database.roles["anna"] = replace(door.database.roles["anna"], can_login=False)
        assert 'role "anna" is not permitted to log in' in await door.error()
        assert "password authentication failed" in await door.error(password="wrong")
        door.database.roles["anna"] = RoleLogin("anna", VERIFIER, valid_until_us=time.time_ns() // 1000 - 1)
        assert 'the password of role "anna" has expired' in await door.error()
        assert "password authentication failed" in await door.error(password="wrong")
        door.database.roles["anna"] = RoleLogin("anna", VERIFIER, valid_until_us=time.time_ns() // 1000 + 60_000_000)
        async with await door.psycopg():
            pass
        assert [one.get("sqlstate") for one in door.events.all] == ["28000", "28P01", "28000", "28P01", None]
        assert (door.refused("rights"), door.refused("expired"), door.refused("password")) == (1, 1, 2)

    run_door(tmp_path, body)


def test_a_role_has_no_more_connections_than_its_limit(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        door.database.roles["anna"] = RoleLogin("anna", VERIFIER, connection_limit=1)
        for _ in range(2):
            async with await door.psycopg():
                assert 'too many connections for role "anna"' in await door.error()
        assert door.refused("connections") == 2
        assert {one.get("sqlstate") for one in door.events.all} == {None, "53300"}

    run_door(tmp_path, body)


def test_a_final_message_is_good_once(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        first = await door.raw()
        await first.begin()
        answer = proof(await first.challenge())
        await first.send(answer)
        letter, content = await first.answer()
        assert (letter, content[3:4]) == ("R", b"\x0c")
        again = await door.raw()
        await again.begin()
        await again.challenge()
        await again.send(answer)
        assert await again.error() == ("08P01", "invalid SCRAM response: the nonce does not match")
        for client in (first, again):
            client.close()

    run_door(tmp_path, body)


@pytest.mark.parametrize(
    ("mechanism", "first", "said"),
    [
        ("SCRAM-SHA-256", b"y,,n=,r=nonce", "thinks that the server does not"),
        ("SCRAM-SHA-256", b"p=tls-server-end-point,,n=,r=nonce", "has channel binding data"),
        ("SCRAM-SHA-256-PLUS", b"n,,n=,r=nonce", "not the channel binding"),
        ("SCRAM-SHA-256-PLUS", b"y,,n=,r=nonce", "not the channel binding"),
        ("SCRAM-SHA-256-PLUS", b"p=tls-unique,,n=,r=nonce", "not the channel binding"),
        ("SCRAM-SHA-1", b"n,,n=,r=nonce", "not offered"),
        ("PLAIN", b"\0anna\0secret", "not offered"),
        ("SCRAM-SHA-256", b"n,a=root,n=,r=nonce", "authorization identity"),
        ("SCRAM-SHA-256", b"n,,m=x,n=,r=nonce", "unsupported SCRAM extension"),
        ("SCRAM-SHA-256", b"n,,n=,r=", "a nonce of printable characters"),
        ("SCRAM-SHA-256", b"n,,n=,r=no\x7fnce", "a nonce of printable characters"),
        ("SCRAM-SHA-256", b"\xff\xfe", "not UTF-8"),
        ("SCRAM-SHA-256", b"", "GS2 header"),
    ],
)
def test_a_first_message_that_contradicts_the_offer_is_refused(tmp_path: Path, mechanism: str, first: bytes, said: str) -> None:
    async def body(door: Door) -> None:
        client = await door.raw()
        await client.begin()
        await client.send(initial(mechanism, first))
        sqlstate, text = await client.error()
        assert sqlstate == "08P01"
        assert said in text
        assert await client.answer() == ("", b"")
        client.close()
        assert door.refused("protocol") == 1
        assert [(one["event"], one["sqlstate"]) for one in door.events.all] == [("login refused", "08P01")]

    run_door(tmp_path, body)


def test_a_proof_is_bound_to_the_servers_certificate(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        header, bare = b"p=tls-server-end-point,,", "n=,r=clientnonce"
        good = end_point_hash((door.folder.folder / "node.pem").read_bytes())
        other = end_point_hash(door.folder.ca_file.read_bytes())
        assert good is not None
        assert other is not None
        for binding, letter in ((good, "R"), (other, "E")):
            client = await door.raw()
            await client.begin()
            challenge = await client.challenge("SCRAM-SHA-256-PLUS", header + bare.encode())
            await client.send(proof(challenge, header=header, binding=binding))
            answered, content = await client.answer()
            assert answered == letter
            assert (letter == "R") != (b"ends at another server" in content)
            client.close()

    run_door(tmp_path, body)


@pytest.mark.parametrize(
    "sent",
    [
        message(b"p", b"SCRAM-SHA-256\0" + b"\0\0\x04\x01" + 1025 * b"x"),
        b"p\x7f\xff\xff\xff",
        message(b"p", b"SCRAM-SHA-256\0\xff\xff\xff\xff"),
        message(b"p", b"SCRAM-SHA-256"),
        message(b"p", b""),
        message(b"Q", b"select 1\0"),
        message(b"X", b""),
        b"p\0\0\0\0",
    ],
)
def test_what_is_no_answer_to_the_offer_ends_the_connection(tmp_path: Path, sent: bytes) -> None:
    """Among them a message that claims two gigabytes: nothing of it is kept."""

    async def body(door: Door) -> None:
        client = await door.raw()
        await client.begin()
        await client.send(sent)
        assert (await client.error())[0] == "08P01"
        assert await client.answer() == ("", b"")
        client.close()
        assert not door.database.sessions

    run_door(tmp_path, body)


def test_an_oversized_message_is_refused_by_its_size(tmp_path: Path) -> None:
    """The server waits for nothing of it."""

    async def body(door: Door) -> None:
        client = await door.raw()
        await client.begin()
        await client.send(b"p\0\0\x08\0")
        sqlstate, text = await client.error()
        assert sqlstate == "08P01"
        assert "exceeds the limit of 1088" in text
        client.close()

    run_door(tmp_path, body, ServerLimits(login_s=3))


def test_nothing_is_served_before_the_proof(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        client = await door.raw()
        await client.begin()
        challenge = await client.challenge()
        # The statement waits behind the proof, which is wrong.
        await client.send(proof(challenge, "wrong"), message(b"Q", b"create table stolen(a int)\0"))
        assert (await client.error())[0] == "28P01"
        assert await client.answer() == ("", b"")
        client.close()
        assert not door.database.sessions

    run_door(tmp_path, body)


def test_an_address_that_guesses_has_to_wait(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        for _ in range(3):
            assert "password authentication failed" in await door.error(password="wrong")
        refused = await door.error()
        assert "too many failed logins from this address" in refused
        assert door.refused("attempts") == 1
        while True:
            try:
                async with await door.psycopg():
                    break
            except Exception as error:
                assert "too many failed logins" in str(error)  # noqa: PT017 -- it ends by a login
                await asyncio.sleep(0.05)

    run_door(tmp_path, body, ServerLimits(failed_logins=3, failed_login_s=1.5))


def test_guesses_that_run_at_the_same_time_are_all_counted(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        clients = [await door.raw() for _ in range(6)]
        challenges = []
        for client in clients:
            await client.begin()
            challenges.append(await client.challenge())
        for client, challenge in zip(clients[:3], challenges, strict=False):
            await client.send(proof(challenge, "wrong"))
            assert (await client.error())[0] == "28P01"
        await clients[3].send(proof(challenges[3]))  # The right one, but too late.
        assert (await clients[3].error())[0] == "28000"
        for client in clients:
            client.close()

    run_door(tmp_path, body, ServerLimits(failed_logins=3, failed_login_s=60))


def test_a_verifier_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        door.database.roles["anna"] = RoleLogin("anna", "md5d41d8cd98f00b204e9800998ecf8427e")
        assert "password authentication failed" in await door.error()
        assert [kind for kind, _ in door.traces] == ["node.role_unusable"]
        assert "d41d8" not in repr(door.traces)

    run_door(tmp_path, body)


def test_the_audit_log_tells_the_cause_and_no_secret(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        await door.error(password="wrong secret")
        await door.error(user="nobody")
        async with await door.psycopg():
            pass
        seen = [(one["event"], one["role"], one.get("reason"), one.get("cause")) for one in door.events.all]
        assert seen == [
            ("login refused", "anna", "password", "wrong password"),
            ("login refused", "nobody", "password", "no such role in this database"),
            ("login accepted", "anna", None, None),
        ]
        assert all((one["database"], one["address"], one["tls"]) == ("shop", "127.0.0.1", "TLSv1.3") for one in door.events.all)
        everything = repr((door.events.all, door.traces, door.metrics.expose()))
        for secret in (PASSWORD, "wrong secret", VERIFIER.rpartition("$")[2], "SCRAM-SHA-256$"):
            assert secret not in everything

    run_door(tmp_path, body)


@pytest.mark.parametrize("change", ["dropped", "another password", "may not log in"])
def test_a_role_that_changes_during_its_login_is_judged_as_it_is_at_the_end(tmp_path: Path, change: str) -> None:
    async def body(door: Door) -> None:
        client = await door.raw()
        await client.begin("anna", "shop")
        challenge = await client.challenge()
        anna = door.database.roles.pop("anna")
        if change == "another password":
            door.database.roles["anna"] = replace(anna, verifier=ScramVerifier.of_password("another", b"sixteen bytes of").text)
        elif change == "may not log in":
            door.database.roles["anna"] = replace(anna, can_login=False)
        await client.send(proof(challenge))
        code, _ = await client.error()
        assert code == ("28000" if change == "may not log in" else "28P01")
        assert not door.database.sessions
        client.close()

    run_door(tmp_path, body)
