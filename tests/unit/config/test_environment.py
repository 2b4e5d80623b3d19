"""A program without a command line has its settings from a file that a variable names, and from variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplicate.config import ClientSettings, SecuritySettings, settings_of_environment
from triplicate.errors import ConfigError


def test_variables_override_the_file_and_the_file_has_sections_of_all(tmp_path: Path) -> None:
    file = tmp_path / "client.toml"
    file.write_text('[client]\nuser = "writer"\nbookie_tls = "required"\n[security]\nca_file = "/ca.pem"\n[bookie]\nport = 1\n')
    environment = {"TRIPLICATE_CONFIG": str(file), "TRIPLICATE_CLIENT_USER": "reader", "TRIPLICATE_LOG_SOMETHING": "of another section"}
    client = settings_of_environment(ClientSettings, environment)
    assert (client.user, client.bookie_tls, client.wire) == ("reader", "required", "v2")
    assert settings_of_environment(SecuritySettings, environment).ca_file == "/ca.pem"


def test_without_variables_there_are_the_defaults() -> None:
    assert settings_of_environment(ClientSettings, {"TRIPLICATE_METADATA": "zk://…"}) == ClientSettings()


def test_mistakes_are_named(tmp_path: Path) -> None:
    file = tmp_path / "client.toml"
    file.write_text("[client]\nusr = 1\n")
    with pytest.raises(ConfigError, match=r"did you mean client\.user"):
        settings_of_environment(ClientSettings, {"TRIPLICATE_CONFIG": str(file)})
    with pytest.raises(ConfigError, match="cannot be read"):
        settings_of_environment(ClientSettings, {"TRIPLICATE_CONFIG": str(tmp_path / "none")})
    with pytest.raises(ConfigError, match="TRIPLICATE_CLIENT_USR"):
        settings_of_environment(ClientSettings, {"TRIPLICATE_CLIENT_USR": "1"})
