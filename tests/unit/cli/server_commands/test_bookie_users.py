"""Users of a bookie by command: the file is private and changed as a whole, and no password is shown."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from triplicate.cli.server_commands.bookie_command import bookie
from triplicate.security import BookieRole, read_users

PASSWORD = "a password for tests"


def run(file: Path, *arguments: str, **variables: str) -> Result:
    name, *rest = arguments
    return CliRunner().invoke(bookie, ["user", name, "--users-file", str(file), *rest], env=variables)


def password_file(folder: Path, password: str = PASSWORD, mode: int = 0o600) -> str:
    path = folder / "password"
    path.write_text(password + "\n")
    path.chmod(mode)
    return str(path)


def test_a_user_is_added_changed_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    added = run(file, "set", "writer", "--roles", "read, write", "--password-file", password_file(tmp_path))
    assert added.exit_code == 0, added.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    user = read_users(str(file), "users")["writer"]
    assert user.roles == (BookieRole.READ, BookieRole.WRITE)
    assert user.scram.matches(PASSWORD)
    assert user.password_hash is not None

    assert run(file, "set", "writer", "--roles", "admin").exit_code == 0
    changed = read_users(str(file), "users")["writer"]
    assert changed.roles == (BookieRole.ADMIN,)
    assert changed.scram == user.scram

    assert run(file, "set", "writer", "--no-digest-md5", TRIPLICATE_USER_PASSWORD="another").exit_code == 0
    last = read_users(str(file), "users")["writer"]
    assert last.roles == (BookieRole.ADMIN,)
    assert last.scram.matches("another")
    assert last.password_hash is None

    assert run(file, "set", "reader", "--roles", "read", TRIPLICATE_USER_PASSWORD=PASSWORD).exit_code == 0
    listed = json.loads(run(file, "list", "--json").output)
    assert listed == [
        {"user": "reader", "roles": ["read"], "digest_md5": True},
        {"user": "writer", "roles": ["admin"], "digest_md5": False},
    ]
    assert run(file, "remove", "writer").exit_code == 0
    assert list(read_users(str(file), "users")) == ["reader"]


def test_no_output_shows_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    outputs = [run(file, "set", "writer", "--roles", "read", TRIPLICATE_USER_PASSWORD=PASSWORD).output]
    user = read_users(str(file), "users")["writer"]
    assert user.password_hash is not None
    outputs += [run(file, "list").output, run(file, "list", "--json").output, repr(user)]
    for secret in (PASSWORD, user.scram.text.split("$")[-1], user.password_hash.hex()):
        assert not [output for output in outputs if secret in output]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("set", "writer"), "give --roles"),
        (("set", "writer", "--roles", "read"), "give the password of 'writer'"),
        (("set", "writer", "--roles", "reads", "--password-file", "PASSWORD"), "there is no role 'reads'"),
        (("set", "a:b", "--roles", "read", "--password-file", "PASSWORD"), "cannot be a user's name"),
        (("set", "a\nb", "--roles", "read", "--password-file", "PASSWORD"), "cannot be a user's name"),
        (("set", "writer", "--roles", "read", "--password-file", "OPEN"), "chmod 600"),
        (("remove", "writer"), "has no user 'writer'"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    file = tmp_path / "users.toml"
    (tmp_path / "open").mkdir()
    paths = {"PASSWORD": password_file(tmp_path), "OPEN": password_file(tmp_path / "open", mode=0o644)}
    result = run(file, *(paths.get(argument, argument) for argument in arguments))
    assert result.exit_code != 0
    assert reason in f"{result.output} {result.exception}"
    assert not file.exists()


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    assert run(file, "set", "writer", "--roles", "read", TRIPLICATE_USER_PASSWORD=PASSWORD).exit_code == 0
    file.chmod(0o640)
    result = run(file, "list")
    assert "chmod 600" in str(result.exception)
