"""The file of users is read again when it changes, at most once a second, and changed by one command after the other."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from triplicate.errors import ConfigError
from triplicate.security import BookieRole, User, UsersFile, change_users, new_user, read_users, write_users
from triplicate.security.users_file import CHECK_INTERVAL_S

WRITER = new_user("writer", "secret", (BookieRole.WRITE,), bytes(16))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def opened(path: Path, traces: list[str] | None = None) -> tuple[UsersFile, Clock]:
    clock: Any = Clock()
    found = traces if traces is not None else []
    return UsersFile(str(path), "bookie.users_file", clock, lambda kind, /, **facts: found.append(f"{kind} {facts}"), bytes(16)), clock


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    write_users(str(path), {"writer": WRITER})
    users, clock = opened(path)
    assert users.find("writer") == (WRITER, True)
    write_users(str(path), {})
    assert users.find("writer") == (WRITER, True)
    clock.now += CHECK_INTERVAL_S
    assert users.find("writer")[1] is False
    assert users.generation == 1


def test_an_unusable_file_leaves_the_users_of_before_and_is_tried_again(tmp_path: Path) -> None:
    path, traces = tmp_path / "users.toml", list[str]()
    write_users(str(path), {"writer": WRITER})
    users, clock = opened(path, traces)
    for content, mode in ((b"[", 0o600), (b"\xff", 0o600), (b"", 0o644), (None, 0)):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
            path.chmod(mode)
        clock.now += CHECK_INTERVAL_S
        assert users.find("writer") == (WRITER, True)
    clock.now += CHECK_INTERVAL_S
    users.refresh()
    assert len(traces) == 4, "each problem is traced once"
    assert all("security.users_not_renewed" in each for each in traces)
    write_users(str(path), {})
    clock.now += CHECK_INTERVAL_S
    assert users.current("writer") == WRITER
    users.refresh()
    assert users.current("writer") is None


def test_an_unknown_user_has_the_same_challenge_each_time(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    write_users(str(path), {"writer": WRITER})
    users, _ = opened(path)
    one, other = users.find("stranger"), users.find("another")
    assert one == users.find("stranger")
    assert not one[1]
    assert one[0].scram.salt != other[0].scram.salt
    assert (one[0].scram.iterations, len(one[0].scram.salt)) == (WRITER.scram.iterations, len(WRITER.scram.salt))


def test_the_file_is_private_from_the_beginning_and_replaces_leftovers(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    (tmp_path / "users.toml.new").write_text("left over")
    write_users(str(path), {"writer": WRITER})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["users.toml"]


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    write_users(str(path), {"writer": WRITER})

    def fail(users: dict[str, User]) -> None:
        users.clear()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change_users(str(path), "users", fail)
    assert list(read_users(str(path), "users")) == ["writer"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"bookie\.users_file: .*cannot be written"):
        change_users(str(tmp_path / "nowhere" / "users.toml"), "bookie.users_file", lambda users: None)


def test_a_missing_or_open_file_stops_a_start(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    with pytest.raises(ConfigError, match=r"bookie\.users_file"):
        opened(path)
    path.touch(mode=0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        opened(path)
