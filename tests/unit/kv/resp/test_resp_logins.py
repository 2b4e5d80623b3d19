"""Clients prove their role by a password, and learn nothing before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import redis

from tests.unit.kv.resp.login_rig import ALL, PASSWORD, Door, run_door
from tests.unit.kv.resp.resp_rig import Stand, play, request
from tests.waiting import LIMIT_S, LOOP_POLL_S, eventually
from triplicate.kv.resp.resp_connections import RespLimits
from triplicate.security import User, new_user


def test_nothing_is_served_before_the_login(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        raw = await door.raw()
        for words in (
            (b"GET", b"a"),
            (b"SET", b"a", b"1"),
            (b"PING",),
            (b"MULTI",),
            (b"EXEC",),
            (b"INFO",),
            (b"SUBSCRIBE", b"__keyspace@0__:a"),
            (b"COMMAND", b"COUNT"),
            (b"TRIPLICATE.LEVEL", b"any"),
            (b"HELLO", b"3"),
        ):
            assert (await raw.ask(request(*words))).startswith(b"-NOAUTH"), words
        assert await raw.ask(request(b"AUTH", b"anna", PASSWORD.encode())) == b"+OK"
        assert await raw.ask(request(b"GET", b"a")) == b"$-1"
        assert await raw.ask(request(b"RESET")) == b"+RESET"
        assert (await raw.ask(request(b"GET", b"a"))).startswith(b"-NOAUTH")
        raw.close()

    run_door(tmp_path, body)


def test_a_wrong_password_and_an_unknown_user_are_refused_alike(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        refusals = set()
        raw = await door.raw()
        for user, password in (
            (b"anna", b"wrong"),
            (b"nobody", PASSWORD.encode()),
            (b"anna@nowhere", b"wrong"),
            (b"nobody@shop", b"x"),
            (b"anna", b""),
            (b"anna", PASSWORD[:-1].encode()),
            (b"carl", PASSWORD.encode()),
            (b"carl@shop", PASSWORD.encode()),
        ):
            refusals.add(await raw.ask(request(b"AUTH", user, password)))
        refusals.add(await raw.ask(request(b"AUTH", PASSWORD.encode())))
        assert refusals == {b"-WRONGPASS invalid username-password pair or user is disabled."}
        assert (await raw.ask(request(b"GET", b"a"))).startswith(b"-NOAUTH")
        assert door.refused("password") == 9
        assert {one["event"] for one in door.events.all} == {"login refused"}
        assert PASSWORD not in str(door.events.all)
        assert {one["cause"] for one in door.events.all} == {"wrong password", "no such user"}
        raw.close()

    run_door(tmp_path, body, limits=RespLimits(failed_login_s=0.001))


def test_an_address_that_guesses_has_to_wait(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        raw = await door.raw()
        for _ in range(2):
            assert b"invalid username-password pair" in await raw.ask(request(b"AUTH", b"anna", b"guess"))
        assert b"too many failed logins" in await raw.ask(request(b"AUTH", b"anna", PASSWORD.encode()))
        other = await door.raw()
        assert b"too many failed logins" in await other.ask(request(b"AUTH", b"anna", PASSWORD.encode()))
        assert door.refused("attempts") == 2
        raw.close()
        other.close()

    run_door(tmp_path, body, limits=RespLimits(failed_logins=2, failed_login_s=600))


def test_a_role_has_its_rights_and_its_store(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        async with door.client("anna@bank") as bank, door.client("anna") as shop, door.client("carl@bank") as carl:
            await bank.set("a", "of the bank")
            assert await shop.get("a") is None
            assert await carl.get("a") == b"of the bank"
            assert [each["user"] for each in await shop.client_list()] == ["anna"]
        async with door.client("ben@bank") as reader, door.client("dora@bank") as writer:
            assert await reader.get("a") == b"of the bank"
            await writer.set("b", "x")
            await writer.delete("b")
            for client, words in (
                (reader, ("SET", "a", "1")),
                (reader, ("GETDEL", "a")),
                (reader, ("INCR", "a")),
                (reader, ("INCRBYFLOAT", "a", "1")),
                (writer, ("GET", "a")),
                (writer, ("SET", "a", "1", "GET")),
                (writer, ("GETDEL", "a")),
                (writer, ("GETEX", "a", "PERSIST")),
                (writer, ("INCR", "a")),
                (writer, ("TRIPLICATE.CAS", "a", "x", "y")),
                (writer, ("MSETNX", "a", "x")),
                (writer, ("KEYS", "*")),
                (writer, ("WATCH", "a")),
                (writer, ("SUBSCRIBE", "__keyspace@0__:a")),
            ):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    await client.execute_command(*words)
            assert "db0" not in await writer.info()
        async with door.client("anna@nowhere") as lost:
            with pytest.raises(redis.ResponseError, match="there is no store 'nowhere'; stores here: bank, shop"):
                await lost.ping()
        accepted = [one for one in door.events.all if one["event"] == "login accepted"]
        assert {(one["role"], one["store"], one["method"]) for one in accepted} >= {
            ("anna", "bank", "password"),
            ("ben", "bank", "password"),
        }

    run_door(tmp_path, body)


def test_exec_runs_nothing_for_which_the_right_was_taken_since_it_was_queued(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        raw, other = await door.raw(), await door.raw()
        for each in (raw, other):
            assert await each.ask(request(b"AUTH", b"anna", PASSWORD.encode())) == b"+OK"
        assert await raw.ask(request(b"MULTI")) == b"+OK"
        for words in ((b"GET", b"a"), (b"SET", b"a", b"1")):
            assert await raw.ask(request(*words)) == b"+QUEUED"
        user = new_user("anna", PASSWORD, ALL[:1], b"sixteen bytes of", digest_md5=False)
        door.change(lambda users: users.update(anna=user))
        async with asyncio.timeout(LIMIT_S):
            while not (await other.ask(request(b"SET", b"b", b"1"))).startswith(b"-NOPERM"):  # The file is looked at once a second.
                await asyncio.sleep(LOOP_POLL_S)
        assert (await raw.ask(request(b"EXEC"))).startswith(b"-NOPERM the rights of user anna were changed since MULTI")
        assert await raw.ask(request(b"GET", b"a")) == b"$-1"
        for command, answer in ((request(b"MULTI"), b"+OK"), (request(b"GET", b"a"), b"+QUEUED"), (request(b"EXEC"), b"*1")):
            assert await raw.ask(command) == answer
        for each in (raw, other):
            each.close()

    run_door(tmp_path, body)


def test_a_reset_gives_the_place_back_and_the_next_login_has_a_limit_of_time(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        first, second = await door.raw(), await door.raw()
        login = request(b"AUTH", b"anna", PASSWORD.encode())
        assert await first.ask(login) == b"+OK"
        connections = door.stand.server
        assert await first.ask(request(b"RESET")) == b"+RESET"
        assert await second.ask(login) == b"+OK"
        assert (await first.ask(login)).startswith(b"-ERR max number of clients reached")
        await first.rest()
        (resetting,) = [each for each in connections._connections.values() if each.is_admitted]
        before = resetting.timer
        assert await second.ask(request(b"RESET")) == b"+RESET"
        assert resetting.timer not in (None, before)
        connections._end_late(resetting)  # As its timer does.
        await second.rest()
        third = await door.raw()
        assert await third.ask(login) == b"+OK"
        third.close()

    run_door(tmp_path, body, limits=RespLimits(connections=1))


def test_a_user_that_is_removed_or_has_another_password_is_served_no_more(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        raw, subscriber = await door.raw(), await door.raw()
        for each in (raw, subscriber):
            assert await each.ask(request(b"AUTH", b"carl@bank", PASSWORD.encode())) == b"+OK"
        subscriber.writer.write(request(b"SUBSCRIBE", b"__keyspace@0__:a"))
        assert await subscriber.reader.readline() == b"*3\r\n"

        def remove(users: dict[str, User]) -> None:
            del users["carl@bank"]

        door.change(remove)
        async with door.client("anna@bank") as client:

            async def is_refused() -> bool:
                await client.set("a", "1")
                return (await raw.ask(request(b"PING"))).startswith(b"-NOAUTH this user was removed")

            async with asyncio.timeout(LIMIT_S):
                while not await is_refused():  # The file is looked at once a second.
                    await asyncio.sleep(LOOP_POLL_S)
            await client.set("a", "2")
            await subscriber.rest()
        raw.close()
        subscriber.close()

    run_door(tmp_path, body)


@pytest.mark.parametrize("gets", ["no entry", "another password"])
def test_an_idle_connection_of_a_user_that_is_removed_or_has_another_password_ends(tmp_path: Path, gets: str) -> None:
    async def body(door: Door) -> None:
        idle, busy, other = await door.raw(), await door.raw(), await door.raw()
        for each in (idle, busy):
            assert await each.ask(request(b"AUTH", b"carl@bank", PASSWORD.encode())) == b"+OK"
        assert await other.ask(request(b"AUTH", b"anna@bank", PASSWORD.encode())) == b"+OK"
        held = door.stand.stores.logs["bank"]
        held.held = True
        busy.writer.write(request(b"SET", b"a", b"1"))
        await held.has_sent(1)

        def change(users: dict[str, User]) -> None:
            if gets == "no entry":
                del users["carl@bank"]
            else:
                users["carl@bank"] = new_user("carl@bank", "other", ALL, b"sixteen bytes of", digest_md5=False)

        door.change(change)
        assert await idle.rest() == b"-NOAUTH this user was removed, or its password was changed\r\n"
        held.held = False
        held.release()
        assert await busy.rest() == b"+OK\r\n", "a change that has begun is answered"
        assert await other.ask(request(b"GET", b"a")) == b"$1"
        for each in (idle, busy, other):
            each.close()

    run_door(tmp_path, body)


def test_a_password_in_clear_is_accepted_from_this_machine_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(door: Door) -> None:
        raw = await door.stand.raw()
        assert await raw.ask(request(b"AUTH", b"anna", PASSWORD.encode())) == b"+OK"
        raw.close()
        monkeypatch.setattr("triplicate.kv.resp.resp_logins.is_loopback", lambda address: False)
        raw = await door.stand.raw()
        assert b"inside TLS only" in await raw.ask(request(b"AUTH", b"anna", PASSWORD.encode()))
        assert door.refused("plain_text") == 1
        raw.close()

    run_door(tmp_path, body, tls="off")


def test_without_authentication_a_user_name_is_the_name_of_a_store(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client(username="bank", password="x") as bank, stand.client(username="me@shop", password="x") as shop:
            await bank.set("a", "of the bank")
            assert await shop.get("a") is None
        async with stand.client() as nowhere:
            with pytest.raises(redis.ResponseError, match="no store is chosen: name it as the user"):
                await nowhere.get("a")
        async with stand.client(username="nowhere", password="x") as nowhere:
            with pytest.raises(redis.ResponseError, match="there is no store 'nowhere'"):
                await nowhere.get("a")
            stand.stores.starting = True
            with pytest.raises(redis.exceptions.BusyLoadingError):
                await nowhere.get("a")

    play(tmp_path, scene, names=("bank", "shop"))


def test_a_place_is_given_back_at_the_end_of_a_connection(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        first, second = await stand.raw(), await stand.raw()
        assert await first.ask(b"PING\r\n") == b"+PONG"
        second.writer.write(b"PING\r\nPING\r\n")
        assert (await second.rest()).startswith(b"-ERR max number of clients reached: 1 connections are open\r\n")
        first.close()
        second.close()
        await eventually(lambda: stand.server.count == 0)
        third = await stand.raw()
        assert await third.ask(b"PING\r\n") == b"+PONG"
        third.close()

    play(tmp_path, scene, limits=RespLimits(connections=1))
