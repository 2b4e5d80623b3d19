"""The settings of a server: the variable by which clients name a cluster does not move it to another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplicate.cli.terminal.options import load_configuration
from triplicate.config import MetadataSettings, ProcessSettings

SECTIONS = (MetadataSettings, ProcessSettings)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("TRIPLICATE_METADATA", "TRIPLICATE_METADATA_URI"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "bookie.toml"
    path.write_text('[metadata]\nuri = "sqlite:///own/metadata.db"\n')
    return str(path)


def uri(config: str | None, **flags: str) -> str:
    found = load_configuration(SECTIONS, config, {f"metadata.{name}": value for name, value in flags.items()})
    return found.get(MetadataSettings).uri


def test_a_server_stays_in_the_cluster_that_its_file_names(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPLICATE_METADATA", "sqlite:///other/metadata.db")
    assert uri(config) == "sqlite:///own/metadata.db"
    assert uri(config, uri="sqlite:///flag/metadata.db") == "sqlite:///flag/metadata.db"
    monkeypatch.setenv("TRIPLICATE_METADATA_URI", "sqlite:///variable/metadata.db")
    assert uri(config) == "sqlite:///variable/metadata.db"


def test_a_server_whose_settings_name_no_cluster_takes_that_of_clients(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert uri(None) == ""
    monkeypatch.setenv("TRIPLICATE_METADATA", "sqlite:///other/metadata.db")
    assert uri(None) == "sqlite:///other/metadata.db"
    Path(config).write_text("[process]\n")
    assert uri(config) == "sqlite:///other/metadata.db"
