"""Roles, their memberships and their rights."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import DATABASE, PUBLIC, READ_ALL, WRITE_ALL, AccessRights, Membership, StoredRole
from triplicate.sql.core.rights import Action, Right, actions_of, letters_of
from triplicate.sql.core.session_roles import SessionRoles

MEMBER = Membership()


def of(
    grants: dict[tuple[str, str], str] | None = None, members: dict[tuple[str, str], Membership] | None = None, **owners: str
) -> AccessRights:
    """Roles a, b and c, of which c is a superuser."""
    roles = [StoredRole("a"), StoredRole("b"), StoredRole("c", is_superuser=True)]
    return AccessRights(roles, members, {key: actions_of(letters) for key, letters in (grants or {}).items()}, owners)


def test_a_grant_is_for_one_table_one_privilege_and_one_role() -> None:
    access = of({("t", "a"): "rw", ("u", "b"): "r"})
    assert access.has("a", Action.SELECT, "t")
    assert access.has("a", Action.UPDATE, "T")
    assert not access.has("a", Action.INSERT, "t")
    assert not access.has("a", Action.SELECT, "u")
    assert not access.has("b", Action.SELECT, "t")
    assert not access.has("missing", Action.SELECT, "t")


def test_a_grant_to_public_is_for_each_role_that_exists() -> None:
    access = of({("t", PUBLIC): "r"})
    assert access.has("a", Action.SELECT, "t")
    assert not access.has("missing", Action.SELECT, "t")


def test_members_have_the_rights_of_their_roles_but_not_the_attributes() -> None:
    access = of({("t", "b"): "r"}, {("b", "a"): MEMBER, ("c", "b"): MEMBER})
    assert access.roles_of("a") == {"a", "b", "c"}
    assert access.has("a", Action.SELECT, "t")
    assert not access.is_superuser("a")
    assert not access.has("a", Action.SUPERUSER)
    only_admin = of({("t", "b"): "r"}, {("b", "a"): Membership(is_member=False, is_admin=True)})
    assert not only_admin.has("a", Action.SELECT, "t")
    assert only_admin.administers("a", "b")
    assert not access.administers("a", "b")


def test_the_owner_has_every_right_and_only_the_owner_changes_the_definition() -> None:
    access = of({("t", "b"): "arwdDxt"}, t="a")
    assert access.has("a", Action.OWN, "T")
    assert access.has("a", Action.TRUNCATE, "t")
    assert not access.has("b", Action.OWN, "t")
    assert not access.has("a", Action.OWN, "of_the_administrator")
    assert access.has("c", Action.OWN, "of_the_administrator")


def test_predefined_roles_read_or_write_all_tables() -> None:
    access = of(None, {(READ_ALL, "a"): MEMBER, (WRITE_ALL, "b"): MEMBER})
    assert [access.has("a", action, "t") for action in (Action.SELECT, Action.INSERT)] == [True, False]
    assert [access.has("b", action, "t") for action in (Action.SELECT, Action.INSERT, Action.DELETE, Action.TRUNCATE)] == [
        False, True, True, False
    ]  # fmt: skip
    assert not access.has("a", Action.CREATE)


def test_every_role_connects_until_that_is_revoked_from_public() -> None:
    assert of().has("a", Action.CONNECT)
    assert not of({(DATABASE, PUBLIC): ""}).has("a", Action.CONNECT)
    assert of({(DATABASE, PUBLIC): "", (DATABASE, "a"): "c"}).has("a", Action.CONNECT)


def test_a_view_is_checked_by_the_rights_of_its_owner() -> None:
    rights = {Right(Action.SELECT, "v", "view"), Right(Action.SELECT, "t", "table", "v")}
    by_the_administrator = of({("v", "a"): "r"})
    assert by_the_administrator.refusal("a", rights) is None
    by_b = of({("v", "a"): "r"}, v="b")
    refusal = by_b.refusal("a", rights)
    assert refusal is not None
    assert (refusal.role, refusal.error.message) == ("b", "permission denied for table t")
    assert of({("v", "a"): "r", ("t", "b"): "r"}, v="b").refusal("a", rights) is None
    assert of({("t", "a"): "r"}, v="b").refusal("a", rights) is not None


def test_refusals_have_postgresqls_words() -> None:
    texts = {
        Right(Action.SELECT, "t"): "permission denied for table t",
        Right(Action.INSERT, "v", "view"): "permission denied for view v",
        Right(Action.OWN, "t"): "must be owner of table t",
        Right(Action.CREATE, ""): "permission denied for schema public",
        Right(Action.SUPERUSER, "use this"): "must be superuser to use this",
    }
    for right, text in texts.items():
        refusal = of().refusal("a", {right})
        assert refusal is not None
        assert (refusal.error.sqlstate, refusal.error.message) == ("42501", text)
        assert of().refusal("c", {right}) is None


def test_letters_name_privileges_and_those_of_a_later_release_are_none() -> None:
    assert letters_of(actions_of("wra?")) == "arw"


def test_a_session_takes_on_the_roles_that_it_is_a_member_of() -> None:
    access = of(None, {("b", "a"): MEMBER})
    roles = SessionRoles("a", is_administrator=False)
    assert (roles.acting, roles.current_user, roles.session_user) == ("a", "a", "a")
    roles.set_role("b", access)
    assert (roles.acting, roles.current_user, roles.session_user, roles.role_setting) == ("b", "b", "a", "b")
    for change, name, sqlstate in ((roles.set_role, "c", "42501"), (roles.set_role, "missing", "22023"), (roles.set_session, "b", "42501")):
        with pytest.raises(SqlError) as raised:
            change(name, access)
        assert raised.value.sqlstate == sqlstate
    assert roles.acting == "b"
    roles.set_role(None, access)
    assert (roles.acting, roles.role_setting) == ("a", "none")


def test_an_administrator_takes_on_any_role_and_returns() -> None:
    access = of()
    roles = SessionRoles("root", is_administrator=True)
    assert roles.acting is None
    assert roles.is_superuser(access)
    roles.set_session("a", access)
    assert [roles.acting, roles.session_user] == ["a", "a"]
    with pytest.raises(SqlError, match="permission denied to set role"):
        roles.set_role("b", access)
    roles.set_session(None, access)
    assert roles.acting is None
    roles.set_role("b", access, local=True)
    assert not roles.is_superuser(access)
    roles.end_transaction()
    assert roles.acting is None
    roles.set_role("b", access)
    roles.reset()
    assert roles.acting is None
