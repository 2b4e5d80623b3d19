"""The switches of auto-recovery."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from triplicate.cli.main import cli


@pytest.fixture
def uri(tmp_path: Path) -> str:
    found = f"sqlite://{tmp_path}/metadata.db"
    assert CliRunner().invoke(cli, ["cluster", "init", found]).exit_code == 0
    return found


def autorecovery(uri: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["cluster", "autorecovery", *arguments, "--metadata", uri])


def status(uri: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(autorecovery(uri, "status", "--json").stdout)
    return found


def test_auto_recovery_is_disabled_and_enabled(uri: str) -> None:
    assert status(uri)["enabled"] is True
    assert "auto-recovery is disabled" in autorecovery(uri, "disable").stdout
    assert "was disabled already" in autorecovery(uri, "disable").stdout
    assert status(uri)["enabled"] is False
    assert "auto-recovery is enabled" in autorecovery(uri, "enable").stdout
    assert "was enabled already" in autorecovery(uri, "enable").stdout
    assert status(uri)["enabled"] is True


def test_the_delay_is_changed_within_its_bounds(uri: str) -> None:
    assert status(uri)["lost_bookie_delay_s"] is None
    assert autorecovery(uri, "delay", "5").exit_code == 0
    assert status(uri)["lost_bookie_delay_s"] == 5
    assert autorecovery(uri, "delay", "-1").exit_code != 0
    assert status(uri)["lost_bookie_delay_s"] == 5


def test_the_status_of_a_cluster_without_a_daemon_says_so(uri: str) -> None:
    facts = status(uri)
    assert (facts["auditor"], facts["candidates"]) == (None, 0)
    assert set(facts["last_checks"].values()) == {None}
    shown = autorecovery(uri, "status").stdout
    assert "none: no daemon runs" in shown
    assert "never" in shown
