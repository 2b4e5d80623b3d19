"""How a node starts: without an open port where it must be secure, and with an interpreter that threads share often."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from triplicate.cli.server_commands import node_command
from triplicate.config import NodeSettings
from triplicate.errors import ConfigError


def test_a_required_security_names_the_users_that_are_missing(tmp_path: Path) -> None:
    config = tmp_path / "node.toml"
    config.write_text(
        f'[metadata]\nuri = "sqlite://{tmp_path}/metadata.db"\n'
        f'[node]\nnode_id = "n"\ndirectory = "{tmp_path}"\n'
        "[security]\nrequired = true\n[resp]\nserve = true\n",
        encoding="utf-8",
    )
    failed = CliRunner().invoke(node_command.node, ["--config", str(config)]).exception
    assert isinstance(failed, ConfigError)
    assert "resp.users_file is not set: nobody could log in to the key-value stores" in str(failed)
    assert not (tmp_path / "metadata.db").exists()


def test_a_node_is_shared_by_short_and_long_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    intervals, limits, reserved = list[float](), list[int](), list[bool]()
    monkeypatch.setattr(sys, "setswitchinterval", intervals.append)
    monkeypatch.setattr(node_command, "limit_memory", limits.append)
    monkeypatch.setattr(node_command, "reserve_small_blocks", lambda: reserved.append(not limits))
    node_command.share_process(NodeSettings(sql_memory_bytes=1 << 30))
    assert (intervals, limits, reserved) == ([node_command.SWITCH_INTERVAL_S], [1 << 30], [True])
