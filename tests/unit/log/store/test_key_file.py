"""The key file of a process: who may read it, when it is read again, and how keys get into it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from triplicate.errors import ArgumentError, ConfigError
from triplicate.log import add_key, read_keys
from triplicate.log.store import key_file as key_file_module
from triplicate.log.store.key_file import READ_AGAIN_S, KeyFile, NoKeys

KEY = bytes(range(32))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def key_file(path: Path, *ids: str) -> Path:
    for key_id in ids:
        add_key(str(path), key_id, "day", lambda: KEY)
    return path


def test_a_new_key_goes_into_a_file_that_only_its_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    before = os.umask(0)
    try:
        assert add_key(str(path), None, "2026-11-26", lambda: KEY) == "2026-11-26"
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert add_key(str(path), None, "2026-11-26", lambda: bytes(32)) == "2026-11-26-2"
    assert read_keys(str(path)) == {"2026-11-26": KEY, "2026-11-26-2": bytes(32)}


def test_a_key_is_added_behind_a_last_line_without_an_end(tmp_path: Path) -> None:
    path = key_file(tmp_path / "keys", "a")
    path.write_text(path.read_text().rstrip("\n"))
    key_file(path, "b")
    assert list(read_keys(str(path))) == ["a", "b"]


def test_an_id_is_never_given_to_another_key(tmp_path: Path) -> None:
    path = key_file(tmp_path / "keys", "a")
    with pytest.raises(ArgumentError, match="has a key 'a' already"):
        add_key(str(path), "a", "day", lambda: bytes(32))
    assert read_keys(str(path)) == {"a": KEY}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o660])
def test_a_file_that_others_may_read_is_refused_with_the_cure(tmp_path: Path, mode: int) -> None:
    path = key_file(tmp_path / "keys", "a")
    path.chmod(mode)
    for attempt in (lambda: read_keys(str(path)), lambda: key_file(path, "b"), lambda: KeyFile(str(path), Clock()).find("a")):
        with pytest.raises(ConfigError, match=rf"mode {mode:04o}\): chmod 600 {path}"):
            attempt()


def test_a_file_that_cannot_be_read_is_named_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing \(log_client.keys_file\) cannot be read: No such file"):
        read_keys(str(tmp_path / "missing"))
    (tmp_path / "bad").write_bytes(b"\xff")
    (tmp_path / "bad").chmod(0o600)
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_keys(str(tmp_path / "bad"))


def test_a_key_that_was_added_is_found_without_a_restart(tmp_path: Path) -> None:
    clock, path = Clock(), key_file(tmp_path / "keys", "a")
    keys = KeyFile(str(path), clock)
    assert (keys.find("a"), keys.find("b"), keys.newest()) == (KEY, None, "a")
    key_file(path, "b")
    assert keys.find("b") == KEY, "however soon after the last question"
    key_file(path, "c")
    assert keys.newest() == "c"
    other = key_file(tmp_path / "other", "a", "d")
    other.rename(path)
    assert (keys.find("d"), keys.newest()) == (KEY, "d")


def test_a_file_is_read_again_only_if_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, reads = KeyFile(str(key_file(tmp_path / "keys", "a")), Clock()), 0

    def counted(path: str) -> dict[str, bytes]:
        nonlocal reads
        reads += 1
        return read_keys(path)

    monkeypatch.setattr(key_file_module, "read_keys", counted)
    for _ in range(3):
        assert (keys.find("a"), keys.find("b"), keys.newest()) == (KEY, None, "a")
    assert reads == 1


def test_a_file_that_is_gone_for_a_moment_keeps_its_keys_and_is_an_error_for_others(tmp_path: Path) -> None:
    path = key_file(tmp_path / "keys", "a")
    keys = KeyFile(str(path), Clock())
    assert keys.find("a") == KEY
    path.rename(tmp_path / "away")
    assert keys.find("a") == KEY
    for attempt in (lambda: keys.find("b"), keys.newest):
        with pytest.raises(ConfigError, match="cannot be read: No such file"):
            attempt()
    (tmp_path / "away").rename(path)
    assert (keys.find("b"), keys.newest()) == (None, "a")


def test_a_key_that_was_taken_out_is_not_used_for_long(tmp_path: Path) -> None:
    clock, path = Clock(), key_file(tmp_path / "keys", "a", "b")
    keys = KeyFile(str(path), clock)
    assert keys.find("a") == KEY
    path.write_text(path.read_text().splitlines(keepends=True)[-1])
    assert keys.find("a") == KEY
    clock.now += READ_AGAIN_S + 0.1
    assert keys.find("a") is None


def test_a_process_without_a_file_has_no_keys_and_says_which_setting_is_missing() -> None:
    assert (NoKeys().find("a"), NoKeys().newest()) == (None, None)
    assert "log_client.keys_file" in NoKeys().place
