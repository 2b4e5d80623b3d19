"""The file of users: what is written is read again, mistakes are named, and no error repeats a secret."""

from __future__ import annotations

import pytest

from triplicate.errors import ArgumentError, FormatError
from triplicate.security.core.bookie_rights import BookieRole
from triplicate.security.core.digest_md5 import hash_of
from triplicate.security.core.users import USER_BYTES_MAX, User, format_users, new_user, parse_users

SCRAM = new_user("x", "p", (), bytes(16)).scram.text


def test_users_are_read_as_they_were_written() -> None:
    users = {
        name: new_user(name, "päss wörd", roles, bytes(range(16)), digest_md5=digest)
        for name, roles, digest in (
            ("writer", (BookieRole.READ, BookieRole.WRITE), True),
            ('quote " and \\', (), False),
            ("jürgen", (BookieRole.ADMIN,), True),
        )
    }
    assert parse_users(format_users(users)) == users
    assert users["jürgen"].password_hash == hash_of("jürgen", "päss wörd")
    assert users["jürgen"].scram.matches("päss wörd")


def test_an_empty_file_has_no_users() -> None:
    assert parse_users("") == parse_users(format_users({})) == {}


@pytest.mark.parametrize(
    "text",
    [
        "scram = 1",
        "[users]\nwriter = 1",
        "[users.writer]\n",
        '[users.writer]\nroles = ["read"]',
        f'[users.writer]\nroles = "read"\nscram = "{SCRAM}"',
        f'[users.writer]\nroles = ["reads"]\nscram = "{SCRAM}"',
        f'[users.writer]\nroles = []\nscram = "{SCRAM}"\ndigest_md5 = "ab"',
        f'[users.writer]\nroles = []\nscram = "{SCRAM}"\npassword = "ab"',
        '[users.writer]\nroles = []\nscram = "a secret"',
        f'[users."a:b"]\nroles = []\nscram = "{SCRAM}"',
        '[users.writer]\nscram = "a secret',
    ],
    ids=range(11),
)
def test_a_mistake_is_named_and_no_secret_is_repeated(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_users(text)
    assert "secret" not in str(caught.value)
    assert SCRAM not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a:b", "a\0b", "a\nb", "x" * (USER_BYTES_MAX + 1), "\u00a0", "ﬁ"])
def test_a_name_that_a_mechanism_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="cannot be a user's name"):
        new_user(name, "p", (), bytes(16))


@pytest.mark.parametrize("password", ["", "a\0b", "x" * 1025])
def test_a_password_that_a_mechanism_cannot_carry_is_refused(password: str) -> None:
    with pytest.raises(ArgumentError, match="a password has"):
        new_user("writer", password, (), bytes(16))


def test_no_secret_is_in_the_repr() -> None:
    user: User = new_user("writer", "p", (), bytes(16))
    assert user.password_hash is not None
    assert user.password_hash.hex() not in repr(user)
    assert repr(user.password_hash) not in repr(user)
