"""The option --secure of the demonstration protects its cluster and encrypts its logs; without it nothing changes."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from triplicate.log import read_keys
from triplicate_demo import demo_command
from triplicate_demo.demo_access import KEYS_VARIABLE


class BegunError(Exception):
    """The demonstration starts its cluster."""


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """The options and the key file with which the cluster is started."""
    monkeypatch.delenv(KEYS_VARIABLE, raising=False)
    seen: dict[str, Any] = {}

    def begin(path: Path, **options: Any) -> None:
        seen.update(options, keys=os.environ.get(KEYS_VARIABLE))
        raise BegunError

    flights = tmp_path / "flights.csv"
    flights.touch()
    monkeypatch.setattr(demo_command, "unpack", lambda _: SimpleNamespace(flights=flights))
    monkeypatch.setattr(demo_command, "expected_figures", lambda _: SimpleNamespace(flights=0))
    monkeypatch.setattr(demo_command, "local_cluster", begin)
    return seen


def start(folder: Path, *options: str) -> None:
    error = CliRunner().invoke(demo_command.demo, ["--dir", str(folder), *options]).exception
    assert isinstance(error, BegunError), repr(error)


def test_a_secure_demonstration_has_a_secured_cluster_and_a_new_key_that_only_its_owner_may_read(
    begun: dict[str, Any], tmp_path: Path
) -> None:
    start(tmp_path / "demo", "--secure")
    assert begun["secure"] is True
    assert Path(begun["keys"]).is_relative_to(tmp_path / "demo" / "work"), "the next run deletes it with what it encrypts"
    assert stat.S_IMODE(os.stat(begun["keys"]).st_mode) == 0o600
    assert len(read_keys(begun["keys"])) == 1
    assert KEYS_VARIABLE not in os.environ


def test_a_key_file_of_the_environment_is_used(begun: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS_VARIABLE, "/etc/triplicate/keys.toml")
    start(tmp_path / "demo", "--secure")
    assert begun["keys"] == "/etc/triplicate/keys.toml"
    assert not (tmp_path / "demo" / "work" / "keys.toml").exists()


def test_without_the_option_the_cluster_is_open(begun: dict[str, Any], tmp_path: Path) -> None:
    start(tmp_path / "demo")
    assert begun["secure"] is False
    assert begun["keys"] is None
    assert not (tmp_path / "demo" / "work" / "keys.toml").exists()
