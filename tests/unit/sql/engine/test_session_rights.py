"""The rights of a session's role are checked before each statement, on the leader and on followers."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster, play, run, state_of
from tests.unit.sql.role_rig import command, grant, grant_create, session_of, with_roles
from tests.waiting import LIMIT_S, eventually
from triplicate.errors import SqlError
from triplicate.security import AUDIT_LOGGER
from triplicate.sql import SqlSession
from triplicate.sql.core.access_rights import PUBLIC
from triplicate.sql.core.audit import ConnectedClient
from triplicate.sql.core.rights import Action
from triplicate.sql.core.role_commands import AlterRole, ChangeGrants, CreateRole, DropRoles
from triplicate.sql.engine.local_copy import AppliedState
from triplicate.sql.storage.applier import LogBatch

DENIED = "42501"


async def _prepared(session: SqlSession, sql: str) -> None:
    """Prepare a statement, and run it twice."""
    prepared = await session.prepare(sql)
    for _ in range(2):
        cursor = await session.start(prepared, ())
        await cursor.close()


async def _in_transaction(session: SqlSession, sql: str, begin: str = "begin") -> None:
    await run(session, begin)
    try:
        await run(session, sql)
    finally:
        await run(session, "rollback")


async def _in_bulk(session: SqlSession, sql: str) -> None:
    await run(session, "begin")
    try:
        change = await session.bulk_change(await session.prepare(sql), is_one_statement=False)
        await change.run([(), ()])
    finally:
        await run(session, "rollback")


async def _after_an_alteration(session: SqlSession, sql: str) -> None:
    await run(session, "begin")
    try:
        await run(session, "create table passing(a)")
        await run(session, sql)
    finally:
        await run(session, "rollback")


WAYS: dict[str, Callable[[SqlSession, str], Awaitable[object]]] = {
    "alone": run,
    "prepared": _prepared,
    "in a transaction": _in_transaction,
    "on the writer": lambda session, sql: _in_transaction(session, sql, "begin immediate"),
    "after an alteration": _after_an_alteration,
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_run_a_statement_checks_the_rights(tmp_path: Path, way: str) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "alice")
        await command(admin, grant(["t"], "alice", Action.SELECT, Action.UPDATE))
        await command(admin, grant_create("alice"))
        alice = await session_of(database, "alice")
        for sql in ("select v from t where id = 1", "update t set v = 'x' where id = 1"):
            assert await state_of(WAYS[way](alice, sql)) == ""  # type: ignore[arg-type]
            denied = sql.replace(" t ", " secret ")
            assert await state_of(WAYS[way](alice, denied)) == DENIED  # type: ignore[arg-type]
        assert await state_of(WAYS[way](alice, "delete from t")) == DENIED  # type: ignore[arg-type]
        assert await run(admin, "select v from secret") == [("secret",)]

    play(tmp_path, scene)


def test_a_bulk_change_checks_the_rights(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "alice")
        await command(admin, grant(["t"], "alice", Action.INSERT))
        alice = await session_of(database, "alice")
        assert await state_of(_in_bulk(alice, "insert into t(v) values('x')")) == ""
        assert await state_of(_in_bulk(alice, "insert into secret(v) values('x')")) == DENIED

    play(tmp_path, scene)


def test_a_revoke_reaches_statements_that_are_prepared_and_transactions_that_are_open(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "alice")
        await command(admin, grant(["t"], "alice", Action.SELECT, Action.INSERT))
        alice, other = await session_of(database, "alice"), await session_of(database, "alice")
        read, write = await alice.prepare("select v from t where id = 1"), await alice.prepare("insert into t(v) values('y')")
        for prepared in (read, write, read):
            await alice.start(prepared, ())
        await run(other, "begin")
        assert await run(other, "select v from t where id = 1") == [("t",)]
        await command(admin, grant(["t"], "alice", Action.SELECT, Action.INSERT, grants=False))
        for prepared in (read, write):
            assert await state_of(alice.start(prepared, ())) == DENIED
        assert await state_of(run(other, "select v from t where id = 1")) == DENIED

    play(tmp_path, scene)


def test_a_follower_checks_by_its_own_copy_and_follows_a_revoke(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader = await cluster.leader()
        admin = await with_roles(leader, "alice")
        await command(admin, grant(["t"], "alice", Action.SELECT))
        name = next(one for one in ("n1", "n2") if one != cluster.leader_name())
        follower = await cluster.serving(name, leader.position)
        assert (await follower.role_login("alice")) == (await leader.role_login("alice"))
        alice = await session_of(follower, "alice")
        read = await alice.prepare("select v from t where id = 1")
        assert await (await alice.start(read, ())).fetch(9) == [("t",)]
        assert await state_of(run(alice, "select v from secret")) == DENIED
        await command(admin, grant(["t"], "alice", Action.SELECT, grants=False))
        await cluster.caught_up(name, leader.position)
        assert await state_of(alice.start(read, ())) == DENIED
        await command(admin, DropRoles(("alice",), if_exists=False))
        await cluster.caught_up(name, leader.position)
        assert await follower.role_login("alice") is None
        assert await state_of(run(alice, "select v from t")) == "57P01"

    play(tmp_path, scene, nodes=2)


def test_a_grant_that_readers_see_on_a_follower_holds_there(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader = await cluster.leader()
        admin = await with_roles(leader, "alice")
        name = next(one for one in ("n1", "n2") if one != cluster.leader_name())
        follower = await cluster.serving(name, leader.position)
        alice, reader = await session_of(follower, "alice"), await follower.session()
        right, committed, reported = follower._copy.apply, threading.Event(), threading.Event()

        def apply(batches: Sequence[LogBatch]) -> AppliedState:
            applied = right(batches)
            committed.set()
            assert reported.wait(LIMIT_S)
            return applied

        waits, catch_up = list[str](), follower.roles.catch_up
        assert catch_up is not None

        async def caught_up() -> None:
            waits.append("refused")
            await catch_up()
            waits.append("reported" if reported.is_set() else "not reported")

        follower.roles.catch_up = caught_up
        follower._copy.apply = apply  # type: ignore[method-assign]
        try:
            await command(admin, grant(["t"], "alice", Action.SELECT))
            await eventually(committed.is_set)
            assert await run(reader, "select count(*) from triplicate_grants where grantee = 'alice'") == [(1,)]
            reading = asyncio.ensure_future(run(alice, "select v from t where id = 1"))
            await eventually(lambda: bool(waits))
        finally:
            reported.set()
        assert await reading == [("t",)]
        assert waits == ["refused", "reported"]

    play(tmp_path, scene, nodes=2)


def test_the_sessions_of_a_dropped_role_end_on_every_node_and_no_others(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader = await cluster.leader()
        admin = await with_roles(leader, "alice", "bob")
        await command(admin, grant(["t"], PUBLIC, Action.SELECT, Action.INSERT))
        name = next(one for one in ("n1", "n2") if one != cluster.leader_name())
        follower = await cluster.serving(name, leader.position)
        idle, in_transaction, waiting, bob = [await session_of(leader, role) for role in ("alice", "alice", "alice", "bob")]
        of_alice = [idle, in_transaction, waiting, await session_of(follower, "alice")]
        await run(in_transaction, "begin")
        assert await run(in_transaction, "select v from t") == [("t",)]
        await command(admin, AlterRole("alice", {"can_login": False}), "ALTER ROLE")
        await cluster.caught_up(name, leader.position)
        await run(admin, "begin")
        await command(admin, DropRoles(("alice",), if_exists=False), "DROP ROLE")
        beginning = asyncio.ensure_future(state_of(run(waiting, "begin immediate")))
        await eventually(lambda: waiting.writer_use == "waits")
        # As in PostgreSQL, a session outlives the right to log in.
        assert not any(one.ended.done() for one in of_alice)
        await run(admin, "commit")
        # The writer may be handed on before the log has acknowledged the commit. It is given back then, as the last statement shows.
        assert await beginning in ("", "57P01")
        for one in of_alice:
            reason = await asyncio.wait_for(asyncio.shield(one.ended), LIMIT_S)
            assert (reason.sqlstate, reason.message) == ("57P01", 'terminating connection because role "alice" was dropped or renamed')
        assert await run(bob, "select v from t") == [("t",)]
        await run(bob, "insert into t values(10, 'bob')")

    play(tmp_path, scene, nodes=2)


def test_a_view_reads_with_the_rights_of_its_owner_and_not_of_its_reader(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "alice", "bob")
        await run(admin, "create view shown as select v from secret")
        await command(admin, grant(["shown"], "alice", Action.SELECT))
        await command(admin, grant(["secret"], "bob", Action.SELECT))
        await command(admin, grant_create("alice"))
        alice, bob = await session_of(database, "alice"), await session_of(database, "bob")
        assert await run(alice, "select v from shown") == [("secret",)]
        assert await state_of(run(bob, "select v from shown")) == DENIED
        await run(alice, "create view trick as select v from secret")
        await command(admin, grant(["trick"], "bob", Action.SELECT))
        assert await state_of(run(bob, "select v from trick")) == DENIED

    play(tmp_path, scene)


OWN_TABLES = (
    "create table own(id integer primary key, v text)",
    "create table below(own integer references own(id) on delete cascade on update set null)",
    "insert into own values(7, 'x')",
    "insert into below values(7)",
    "create view trick as select v from secret",
    "create trigger robs after insert on own when new.v = 'go' begin insert into own(v) select v from secret; delete from secret; end",
    "create trigger robs_below after delete on below begin delete from secret; end",
    "create trigger robs_unset after update on below begin delete from secret; end",
)
ROBBERIES = (
    "insert into own(v) values('go')",
    "select v from trick",
    "create table taken as select v from trick",
    "delete from own where id = 7",
    "update own set id = 8 where id = 7",
    "replace into own values(7, 'y')",
)


async def _superusers(cluster: Cluster) -> list[SqlSession]:
    """The sessions of a superuser and of the administrator. Alice owns tables and a view that use ``secret``."""
    database = await cluster.leader()
    admin = await with_roles(database, "alice", "sup")
    await command(admin, AlterRole("sup", {"is_superuser": True}))
    await command(admin, grant_create("alice"))
    alice = await session_of(database, "alice")
    for sql in OWN_TABLES:
        await run(alice, sql)
    return [await session_of(database, "sup"), admin]


@pytest.mark.parametrize("way", WAYS)
def test_what_belongs_to_a_role_acts_with_its_rights_in_statements_of_superusers(tmp_path: Path, way: str) -> None:
    async def scene(cluster: Cluster) -> None:
        superusers = await _superusers(cluster)
        for session in superusers:
            for sql in ROBBERIES:
                assert await state_of(WAYS[way](session, sql)) == DENIED, sql  # type: ignore[arg-type]
            assert await state_of(WAYS[way](session, "select v from own")) == ""  # type: ignore[arg-type]
            assert await run(session, "select v from secret") == [("secret",)]
        await command(superusers[1], grant(["secret"], "alice", Action.SELECT, Action.DELETE))
        assert await state_of(WAYS[way](superusers[0], ROBBERIES[0])) == ""  # type: ignore[arg-type]

    play(tmp_path, scene)


def test_a_bulk_change_of_a_superuser_checks_the_rights_of_the_triggers_owner(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        superusers = await _superusers(cluster)
        for session in superusers:
            assert await state_of(_in_bulk(session, ROBBERIES[0])) == DENIED
            with pytest.raises(SqlError) as refused:
                await run(session, ROBBERIES[0])
            assert str(refused.value) == "permission denied for table secret"
            assert refused.value.hint == 'own and its triggers act with the rights of their owner, "alice".'

    play(tmp_path, scene)


def test_what_superusers_own_acts_with_all_rights(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        superusers = await _superusers(cluster)
        for session, name in zip(superusers, ("a", "b"), strict=True):
            await run(session, f"create table {name}(v text)")
            await run(session, f"create trigger on_{name} after insert on {name} begin insert into secret(v) values('{name}'); end")
            for other in superusers:
                await run(other, f"insert into {name} values('x')")

    play(tmp_path, scene)


def test_only_the_owner_changes_a_table_and_its_rights_go_with_it(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "alice", "bob")
        await command(admin, grant_create("alice"))
        alice, bob = await session_of(database, "alice"), await session_of(database, "bob")
        assert await state_of(run(bob, "create table b(a)")) == DENIED
        await run(alice, "create table own(a text)")
        await command(alice, grant(["own"], "bob", Action.SELECT))
        for sql in ("drop table own", "alter table own add column b text", "create index i on own(a)", "alter table own rename to other"):
            assert await state_of(run(bob, sql)) == DENIED
        await run(alice, "alter table own rename to renamed")
        assert await run(bob, "select a from renamed") == []
        await run(alice, "drop table renamed")
        await run(admin, "create table renamed(a text)")
        assert await state_of(run(bob, "select a from renamed")) == DENIED
        assert await state_of(run(alice, "select a from renamed")) == DENIED

    play(tmp_path, scene)


def test_a_change_of_roles_is_undone_with_its_transaction(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "alice")
        alice = await session_of(database, "alice")
        await run(admin, "begin")
        await command(admin, grant(["t"], "alice", Action.SELECT))
        await run(admin, "savepoint s")
        await command(admin, CreateRole("carol", {}))
        assert admin.access.exists("carol")
        await run(admin, "rollback to s")
        assert not admin.access.exists("carol")
        assert admin.access.has("alice", Action.SELECT, "t")
        assert await state_of(run(alice, "select v from t")) == DENIED
        await run(admin, "rollback")
        assert await state_of(run(alice, "select v from t")) == DENIED
        assert not database.roles.access.has("alice", Action.SELECT, "t")
        await run(admin, "begin")
        await command(admin, grant(["t"], "alice", Action.SELECT))
        await run(admin, "commit")
        assert await run(alice, "select v from t") == [("t",)]

    play(tmp_path, scene)


def test_a_password_becomes_a_verifier_before_it_is_stored(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database)
        verifier = await admin.verifier_of("hedgehog")
        await command(admin, CreateRole("alice", {"can_login": True, "verifier": verifier}))
        login = await database.role_login("alice")
        assert login is not None
        assert login.verifier is not None
        assert login.verifier.startswith("SCRAM-SHA-256$")
        assert "hedgehog" not in str(await run(admin, "select * from triplicate_roles"))
        assert await admin.verifier_of(login.verifier) == login.verifier
        assert await state_of(admin.verifier_of("SCRAM-SHA-256$what")) == "22023"
        assert await state_of(admin.verifier_of("md5" + 32 * "a")) == "0A000"
        assert await state_of(admin.verifier_of("x" * 2000)) == "22023"

    play(tmp_path, scene)


def test_a_database_without_authentication_has_administrators_only_and_stores_nothing(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session(client=ConnectedClient("db", "anyone", "192.0.2.1"))
        await run(session, "create table t(a)")
        await run(session, "insert into t values(1)")
        assert await run(session, "select a from t") == [(1,)]
        assert await run(session, "select count(*) from sqlite_schema where name like 'triplicate_roles'") == [(0,)]

    play(tmp_path, scene)


def test_connect_may_be_revoked(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "alice")
        await session_of(database, "alice")
        await command(admin, ChangeGrants(False, frozenset((Action.CONNECT,)), ("",), on_database=True))
        with pytest.raises(SqlError, match="permission denied for database"):
            await session_of(database, "alice")
        await command(admin, AlterRole("alice", {"is_superuser": True}))
        await session_of(database, "alice")

    play(tmp_path, scene)


def test_a_repeated_request_is_answered_to_its_own_role_only(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "alice")
        await command(admin, grant(["t"], "alice", Action.INSERT))
        await admin.set_request_id("one")
        assert await run(admin, "insert into secret(v) values('hidden') returning v") == [("hidden",)]
        alice = await session_of(database, "alice")
        for _ in range(2):
            await alice.set_request_id("one")
            assert await run(alice, "insert into t(v) values('mine')") == []
        assert await run(admin, "select count(*) from t where v = 'mine'") == [(1,)]

    play(tmp_path, scene)


def test_refusals_and_changes_of_roles_and_of_the_schema_are_audited_without_constants(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        admin = await with_roles(database, "alice")
        await command(admin, CreateRole("bob", {"verifier": await admin.verifier_of("hedgehog")}), "CREATE ROLE")
        alice = await session_of(database, "alice")
        assert await state_of(run(alice, "select * from secret where v = 'constant-1'")) == DENIED
        assert await state_of(command(alice, grant(["t"], "alice", Action.SELECT))) == DENIED
        await run(admin, "create table logged(a text default 'constant-2')")

    with caplog.at_level(logging.INFO, AUDIT_LOGGER):
        play(tmp_path, scene)
    lines = [json.loads(record.message) for record in caplog.records if record.name == AUDIT_LOGGER]
    refused = [line for line in lines if line["event"] == "statement refused"]
    assert [(line["role"], line["address"], line["statement"]) for line in refused] == [
        ("alice", "192.0.2.1", "SELECT"),
        ("alice", "192.0.2.1", "GRANT"),
    ]
    assert (refused[0]["right"], refused[0]["relation"]) == ("SELECT", "secret")
    assert [line["relation"] for line in lines if line["event"] == "schema changed"][-1] == "logged"
    assert {"statement": "CREATE ROLE", "changed_role": "bob"}.items() <= [line for line in lines if line["event"] == "role changed"][
        -1
    ].items()
    text = json.dumps(lines)
    assert not any(secret in text for secret in ("constant-1", "constant-2", "hedgehog", "SCRAM"))
