"""Ensembles are frozen with a reason and an end, shown, and freed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from triplicate.cli.main import cli


@pytest.fixture
def uri(tmp_path: Path) -> str:
    found = f"sqlite://{tmp_path}/metadata.db"
    assert CliRunner().invoke(cli, ["cluster", "init", found]).exit_code == 0
    return found


def freeze(uri: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["cluster", "freeze-ensembles", *arguments, "--metadata", uri])


def test_a_freeze_is_made_shown_and_ended(uri: str) -> None:
    made = json.loads(freeze(uri, "on", "--reason", "a switch is replaced", "--minutes", "30", "--json").stdout)
    assert (made["frozen"], made["reason"]) == (True, "a switch is replaced")
    assert made["until_ms"] - made["since_ms"] == 1_800_000
    assert json.loads(freeze(uri, "status", "--json").stdout) == made
    assert freeze(uri, "status").stdout.startswith("ensembles are frozen until 20")
    assert json.loads(freeze(uri, "off", "--json").stdout) == {"frozen": False, "changed": True}
    assert freeze(uri, "off").stdout == "ensembles were not frozen\n"
    assert freeze(uri, "status").stdout == "ensembles are not frozen\n"
    assert json.loads(freeze(uri, "status", "--json").stdout) == {"frozen": False}


def test_a_freeze_needs_a_reason_and_an_end(uri: str) -> None:
    assert freeze(uri, "on").exit_code == 2
    assert freeze(uri, "on", "--reason", "r", "--minutes", "0").exit_code == 2
    assert freeze(uri, "on", "--reason", "r", "--minutes", "20000").exit_code == 2
    assert freeze(uri, "on", "--reason", " ").exit_code == 1
    assert json.loads(freeze(uri, "status", "--json").stdout) == {"frozen": False}
