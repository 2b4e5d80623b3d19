"""A login ends with the user as it was at its first token."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.security import User, UsersFile

TESTS = [
    "tests/unit/bookie/server/test_doorkeeper.py::test_a_login_that_began_before_its_user_was_changed_gets_no_more_than_one_that_begins_now"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def as_it_was(users: UsersFile, proven: User) -> User:
        return proven

    patch(UsersFile, "same_user", as_it_was)
