"""Changes of roles on the writing connection: what the log has of them, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.rowlog_workload import Pair, contents
from triplicate.errors import Diverged, SqlError
from triplicate.sql import SettingChange, decode_header, decode_transaction
from triplicate.sql.core.access_rights import ADMINISTRATOR, Membership, StoredRole
from triplicate.sql.core.interface import Prepared, StatementKind
from triplicate.sql.core.records import Operation
from triplicate.sql.core.rights import Action
from triplicate.sql.core.role_commands import (
    AlterRole,
    ChangeGrants,
    ChangeMembers,
    ChangeOwner,
    CreateRole,
    DropRoles,
    ReassignOwned,
    RenameRole,
    RoleCommand,
)
from triplicate.sql.executor.statement_batches import AutocommitRequest
from triplicate.sql.storage.access_tables import load_access_rights
from triplicate.sql.storage.applier import follow

SELECT = frozenset((Action.SELECT,))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.close()


def send(pair: Pair, *changes: RoleCommand | str, role: str | None = None) -> list[Operation]:
    """Run each change as a batch of its own, as a role, and apply it on the follower; the operations logged."""
    logged: list[Operation] = []
    for change in changes:
        if isinstance(change, str):
            prepared = pair.gate.examine(change)
        else:
            prepared = Prepared("", StatementKind.SCHEMA, (), (), "GRANT", command=change)
        pending = pair.writer.run_batch([AutocommitRequest(prepared, (), role=role)])
        error = pending.answers[0].error
        if error is not None:
            pair.writer.rollback()
            raise error
        pair.send(pending)
        tables = decode_header(pending.preamble).tables
        for record in pending.records:
            logged += decode_transaction(record, tables).operations
    return logged


def refusal(pair: Pair, change: RoleCommand | str, role: str | None = None) -> str:
    with pytest.raises(SqlError) as raised:
        send(pair, change, role=role)
    return raised.value.sqlstate


def test_the_log_has_roles_and_rights_as_settings_which_no_change_feed_shows(pair: Pair) -> None:
    # The second table has the capture read the schema again, with the internal tables in it.
    send(pair, "create table t(a integer primary key autoincrement)", CreateRole("first", {}), "create table u(a)")
    logged = send(
        pair,
        CreateRole("alice", {"can_login": True, "verifier": "SCRAM-SHA-256$…"}),
        CreateRole("bob", {}),
        ChangeGrants(True, SELECT, ("alice",), ("t",)),
        ChangeMembers(True, ("bob",), ("alice",)),
        ChangeOwner("t", "table", "bob"),
    )
    assert {type(operation) for operation in logged} == {SettingChange}
    assert [operation.name.partition(":")[0] for operation in logged if isinstance(operation, SettingChange)] == [
        "role", "role", "grant", "role_member", "owner"
    ]  # fmt: skip
    assert contents(pair.paths[0]) == contents(pair.paths[1])


def test_a_follower_has_the_leaders_roles_and_rights(pair: Pair) -> None:
    role = StoredRole("alice", "SCRAM-SHA-256$…", True, False, True, 5, 7)
    send(
        pair,
        "create table t(a)",
        CreateRole("bob", {}),
        CreateRole(
            "alice", {"verifier": role.verifier, "can_login": True, "can_create_roles": True, "valid_until_us": 5, "connection_limit": 7}
        ),
        ChangeMembers(True, ("bob",), ("alice",), admin=True),
        ChangeGrants(True, SELECT, ("alice", ""), ("T",)),
        ChangeOwner("t", "table", "bob"),
    )
    for access in (pair.writer.access, load_access_rights(pair.follower)):
        assert access.role("alice") == role
        assert access.members == {("bob", "alice"): Membership(True, True)}
        assert access.grants == {("t", "alice"): SELECT, ("t", ""): SELECT}
        assert access.owner("t") == "bob"
    assert "SCRAM" not in repr(role)


def test_rights_follow_a_renamed_role_and_a_renamed_table(pair: Pair) -> None:
    send(pair, "create table t(a)", CreateRole("bob", {}), CreateRole("alice", {}))
    send(pair, ChangeMembers(True, ("bob",), ("alice",)), ChangeGrants(True, SELECT, ("bob",), ("t",)), ChangeOwner("t", "table", "bob"))
    send(pair, RenameRole("bob", "carol"), "alter table t rename to u")
    for access in (pair.writer.access, load_access_rights(pair.follower)):
        assert access.has("alice", Action.SELECT, "u")
        assert access.owner("u") == "carol"
        assert not access.exists("bob")
        assert access.owner("t") is None
    send(pair, "drop table u")
    assert pair.writer.access.depending("carol") == []
    send(pair, DropRoles(("carol",), if_exists=False))
    assert pair.writer.access.members == {}


def test_mistakes_have_postgresqls_sqlstates(pair: Pair) -> None:
    send(pair, "create table t(a)", CreateRole("alice", {}), CreateRole("bob", {}), ChangeMembers(True, ("bob",), ("alice",)))
    send(pair, ChangeGrants(True, SELECT, ("alice",), ("t",)))
    assert refusal(pair, CreateRole("alice", {})) == "42710"
    assert refusal(pair, CreateRole("pg_mine", {})) == "42939"
    assert refusal(pair, CreateRole("x" * 64, {})) == "42602"
    assert refusal(pair, AlterRole("nobody", {})) == "42704"
    assert refusal(pair, DropRoles(("nobody",), if_exists=False)) == "42704"
    send(pair, DropRoles(("nobody",), if_exists=True))
    assert refusal(pair, DropRoles(("alice",), if_exists=False)) == "2BP01"
    assert refusal(pair, DropRoles(("pg_read_all_data",), if_exists=False)) == "42939"
    assert refusal(pair, ChangeGrants(True, SELECT, ("nobody",), ("t",))) == "42704"
    assert refusal(pair, ChangeGrants(True, SELECT, ("alice",), ("none",))) == "42P01"
    assert refusal(pair, ChangeGrants(True, SELECT, ("alice",), ("triplicate_roles",))) == "42P01"
    assert refusal(pair, ChangeMembers(True, ("alice",), ("bob",))) == "0LP01"
    assert refusal(pair, ChangeMembers(True, ("alice",), ("alice",))) == "0LP01"
    assert refusal(pair, ChangeOwner("t", "table", "nobody")) == "42704"


def test_a_role_administers_the_roles_that_it_has_made_and_no_superuser(pair: Pair) -> None:
    send(pair, CreateRole("maker", {"can_create_roles": True}), CreateRole("root", {"is_superuser": True}), CreateRole("other", {}))
    assert refusal(pair, CreateRole("x", {}), "other") == "42501"
    assert refusal(pair, CreateRole("x", {"is_superuser": True}), "maker") == "42501"
    assert refusal(pair, CreateRole("x", {}, ("pg_read_all_data",)), "maker") == "42501"
    send(pair, CreateRole("made", {}), role="maker")
    assert not pair.writer.access.is_member("maker", "made")
    send(pair, AlterRole("made", {"can_login": True}), ChangeMembers(True, ("made",), ("other",)), role="maker")
    for change in (
        AlterRole("other", {"can_login": True}), AlterRole("root", {"verifier": "x"}), AlterRole("maker", {"is_superuser": True}),
        DropRoles(("other",), if_exists=False), ChangeMembers(True, ("other",), ("maker",)), ChangeMembers(True, ("root",), ("maker",)),
        ChangeMembers(True, ("pg_write_all_data",), ("maker",)), RenameRole("other", "another"),
    ):  # fmt: skip
        assert refusal(pair, change, "maker") == "42501"
    send(pair, AlterRole("other", {"verifier": "SCRAM"}), role="other")
    assert refusal(pair, AlterRole("other", {"verifier": "SCRAM", "can_create_roles": True}), "other") == "42501"
    send(pair, DropRoles(("made",), if_exists=False), role="maker")


def test_a_new_table_belongs_to_its_role_and_may_be_reassigned(pair: Pair) -> None:
    send(pair, CreateRole("alice", {}), CreateRole("bob", {}))
    send(pair, "create table t(a)", "create view v as select a from t", role="alice")
    assert (pair.writer.access.owner("t"), pair.writer.access.owner("v")) == ("alice", "alice")
    assert refusal(pair, ChangeGrants(True, SELECT, ("bob",), ("t",)), "bob") == "42501"
    assert refusal(pair, ReassignOwned(("alice",), "bob"), "bob") == "42501"
    assert refusal(pair, ChangeOwner("t", "table", "bob"), "alice") == "42501"
    send(pair, ChangeGrants(True, SELECT, ("bob",), None), role="alice")
    assert pair.writer.access.has("bob", Action.SELECT, "v")
    send(pair, ReassignOwned(("alice",), "bob"))
    assert (pair.writer.access.owner("t"), pair.writer.access.owner("v")) == ("bob", "bob")


def test_tables_go_to_the_administrator_and_from_it_under_the_name_that_it_is_shown_with(pair: Pair) -> None:
    send(pair, CreateRole("alice", {}), CreateRole("bob", {}), "create table ours(a)")
    send(pair, "create table t(a)", "create view v as select a from t", role="alice")

    def owners() -> list[str | None]:
        return [pair.writer.access.owner(name) for name in ("ours", "t", "v")]

    to_and_from = (
        ReassignOwned((ADMINISTRATOR,), "alice"),
        ReassignOwned(("alice",), ADMINISTRATOR),
        ChangeOwner("t", "table", ADMINISTRATOR),
    )
    for change in to_and_from:
        assert refusal(pair, change, "alice") == "42501"
    send(pair, ReassignOwned((ADMINISTRATOR,), "bob"))
    assert owners() == ["bob", "alice", "alice"]
    send(pair, ChangeOwner("v", "view", ADMINISTRATOR), ReassignOwned(("alice",), ADMINISTRATOR))
    assert owners() == ["bob", None, None]
    send(pair, DropRoles(("alice",), if_exists=False))
    assert refusal(pair, CreateRole(ADMINISTRATOR, {})) == "42939"
    with pytest.raises(SqlError, match="does not exist") as refused:
        send(pair, ChangeMembers(True, (ADMINISTRATOR,), ("bob",)))
    assert "administrator" in (refused.value.hint or "")


def test_a_foreign_key_needs_the_right_to_refer(pair: Pair) -> None:
    send(pair, "create table p(id integer primary key)", CreateRole("alice", {}))
    child = "create table c(p integer references p(id))"
    assert refusal(pair, child, "alice") == "42501"
    send(pair, ChangeGrants(True, frozenset((Action.REFERENCES,)), ("alice",), ("p",)))
    send(pair, child, role="alice")


def test_a_follower_of_an_earlier_release_stops_at_a_setting_that_it_does_not_know(pair: Pair) -> None:
    send(pair, CreateRole("alice", {}))
    with pytest.raises(Diverged, match="does not know"):
        pair.applier._apply_setting(SettingChange("later:x", 1))
    with pytest.raises(Diverged, match="does not know"):
        pair.applier._apply_setting(SettingChange("role_member:[1]", "[1,1]"))
    follow(pair.applier, [])
