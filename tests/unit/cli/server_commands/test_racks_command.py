from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from triplicate.cli.main import cli
from triplicate.cli.server_commands.racks_command import describe_racks
from triplicate.errors import ArgumentError, ConfigError
from triplicate.ledger import RegisteredBookie, resolve_sites


@pytest.fixture
def uri(tmp_path: Path) -> str:
    found = f"sqlite://{tmp_path}/metadata.db"
    assert CliRunner().invoke(cli, ["cluster", "init", found]).exit_code == 0
    return found


def racks(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["cluster", "racks", *arguments])


def test_entries_are_set_shown_and_removed(uri: str) -> None:
    assert racks("set", "b1", "/west/r1", "--metadata", uri).exit_code == 0
    shown = json.loads(racks("show", "--json", "--metadata", uri).stdout)
    assert shown == {"bookies": [], "not_registered": {"b1": "/west/r1"}, "problems": []}
    assert racks("unset", "b1", "--metadata", uri).exit_code == 0
    assert isinstance(racks("unset", "b1", "--metadata", uri).exception, ConfigError)
    assert isinstance(racks("set", "b1", "west", "--metadata", uri).exception, ArgumentError)


def test_bookies_entries_without_a_bookie_and_problems_are_told_apart() -> None:
    table = {"b1": "/r1", "b9": "/r9", "host": "/r2"}
    found = resolve_sites([RegisteredBookie("b1", "host"), RegisteredBookie("b2", "host"), RegisteredBookie("b3", "other", "/r3")], table)
    described = describe_racks(found, table)
    assert described["not_registered"] == {"b9": "/r9"}
    assert [row["source"] for row in described["bookies"]] == ["default", "default", "registration"]
    assert len(described["problems"]) == 1
