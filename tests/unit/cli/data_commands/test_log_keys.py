"""The commands on keys reach the cluster with the settings of client commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from triplicate.cli.data_commands.log_keys import key
from triplicate.errors import ConfigError


def test_a_key_is_not_rotated_over_an_unprotected_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "client.toml"
    settings.write_text('[security]\nrequired = true\nca_file = "/etc/triplicate/ca.pem"\n\n[client]\nbookie_tls = "off"\n')
    monkeypatch.setenv("TRIPLICATE_CONFIG", str(settings))
    (tmp_path / "metadata.db").touch()
    refused = CliRunner().invoke(key, ["rotate", "events", "--metadata", f"sqlite://{tmp_path / 'metadata.db'}"]).exception
    assert isinstance(refused, ConfigError), repr(refused)
    assert "security.required is set" in str(refused)
    assert "client.bookie_tls" in str(refused)
