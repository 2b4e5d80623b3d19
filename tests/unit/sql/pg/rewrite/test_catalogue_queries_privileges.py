"""The functions that answer for the rights of a role, asked by the session itself, and by others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.unit.sql.pg.node_rig import ServedCluster, play_served

SETUP = (
    "create table t(id integer primary key, v text)",
    "create role reader",
    "create role chief superuser",
    "create role member in role reader",
    "grant select on t to reader",
)
OF_THE_SESSION = (
    "has_table_privilege({0}, 't', 'SELECT, DELETE')",
    "has_table_privilege({0}, 't'::regclass, 'INSERT')",
    "has_column_privilege({0}, 't', 'v', 'UPDATE')",
    "has_any_column_privilege({0}, 't', 'UPDATE')",
    "has_schema_privilege({0}, 'public', 'CREATE')",
    "has_database_privilege({0}, current_database(), 'CREATE')",
    "pg_has_role({0}, 'reader', 'MEMBER')",
    "pg_has_role({0}, {0}, 'USAGE')",
)


async def one(connection: psycopg.AsyncConnection[Any], sql: str, *parameters: object) -> Any:
    row = await (await connection.execute(sql, parameters or None)).fetchone()
    return None if row is None else row[0] if len(row) == 1 else row


def test_the_administrator_has_every_right_by_any_name(tmp_path: Path) -> None:
    async def scene(cluster: ServedCluster) -> None:
        root = await cluster.psycopg("n1", "root")
        for statement in SETUP:
            await root.execute(statement)
        for name in ("current_user", "session_user", "current_role", "'root'", "(select current_user)"):
            asked = ", ".join(question.format(name) for question in OF_THE_SESSION)
            assert await one(root, f"select {asked}") == (True,) * len(OF_THE_SESSION), name
        assert await one(root, "select has_table_privilege(%s, 't', 'SELECT')", "root") is True
        assert (
            await one(root, "select count(*) from pg_class where has_table_privilege(current_user, oid, 'SELECT') and relname = 't'") == 1
        )
        await root.execute("set role reader")
        asked = ", ".join(f"has_table_privilege({name}, 't', 'INSERT')" for name in ("current_user", "session_user", "'root'"))
        assert await one(root, f"select {asked}, has_table_privilege('t', 'SELECT')") == (False, True, True, True)

    play_served(tmp_path, scene)


def test_other_names_are_those_of_the_databases_roles(tmp_path: Path) -> None:
    async def scene(cluster: ServedCluster) -> None:
        root = await cluster.psycopg("n1", "root")
        for statement in SETUP:
            await root.execute(statement)
        for question in OF_THE_SESSION:
            with pytest.raises(psycopg.errors.UndefinedObject, match='role "app" does not exist'):
                await root.execute("select " + question.format("'app'"))
        asked = ", ".join(question.format("'reader'") for question in OF_THE_SESSION)
        assert await one(root, f"select {asked}") == (True, False, False, False, False, False, True, True)
        members = (("'reader'", "'chief'"), ("'reader'", "current_user"), ("'chief'", "current_user"), ("'member'", "'reader'"))
        asked = ", ".join(f"pg_has_role({member}, {role}, 'MEMBER')" for member, role in members)
        assert await one(root, f"select {asked}") == (False, False, True, True)
        with pytest.raises(psycopg.errors.UndefinedColumn):
            await root.execute("select has_column_privilege('t', 'nosuch', 'SELECT')")
        assert await one(root, "select has_column_privilege('member', 't', 2, 'SELECT'), has_column_privilege('t', 'v', 'SELECT')") == (
            True,
            True,
        )

    play_served(tmp_path, scene)


def test_the_administrator_owns_as_current_user(tmp_path: Path) -> None:
    async def scene(cluster: ServedCluster) -> None:
        root = await cluster.psycopg("n1", "root")
        for statement in (*SETUP, "alter table t owner to reader", "reassign owned by reader to current_user"):
            await root.execute(statement)
        assert await one(root, "select pg_get_userbyid(relowner) from pg_class where relname = 't'") == "triplicate"
        for statement in ("reassign owned by session_user to reader", "set role reader", "alter table t owner to current_user"):
            await root.execute(statement)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await root.execute("alter table t owner to session_user")
        await root.execute("alter table t owner to current_user")
        assert await one(root, "select pg_get_userbyid(relowner) from pg_class where relname = 't'") == "reader"

    play_served(tmp_path, scene)
