"""A node that must be secure does not start with an open port for clients of Redis."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from triplicate.cli.server_commands.node_command import node
from triplicate.errors import ConfigError


def test_a_required_security_names_the_users_that_are_missing(tmp_path: Path) -> None:
    config = tmp_path / "node.toml"
    config.write_text(
        f'[metadata]\nuri = "sqlite://{tmp_path}/metadata.db"\n'
        f'[node]\nnode_id = "n"\ndirectory = "{tmp_path}"\n'
        "[security]\nrequired = true\n[resp]\nserve = true\n",
        encoding="utf-8",
    )
    failed = CliRunner().invoke(node, ["--config", str(config)]).exception
    assert isinstance(failed, ConfigError)
    assert "resp.users_file is not set: nobody could log in to the key-value stores" in str(failed)
    assert not (tmp_path / "metadata.db").exists()
