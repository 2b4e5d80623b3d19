"""How the demonstration reaches an open and a secured cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from triplicate.cli import ClusterFolder, ClusterMember
from triplicate.sql import Administrator
from triplicate_demo import demo_access
from triplicate_demo.demo_access import KEYS_VARIABLE, LIBPQ_VARIABLES, DemoAccess

MEMBERS = (
    ClusterMember("bookie-1", "bookie", 20001, 20002),
    ClusterMember("node-1", "node", 20003, 0),
    ClusterMember("node-2", "node", 20004, 0),
)
PLAIN = "host=127.0.0.1,127.0.0.1 port=20003,20004 dbname=flights user=demo target_session_attrs=read-write"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterFolder:
    """Of a secured cluster."""
    made = ClusterFolder(tmp_path / "cluster", "", MEMBERS, is_secured=True)
    made.write_configs()
    monkeypatch.setenv(KEYS_VARIABLE, "/etc/triplicate/keys.toml")
    return made


def test_a_secured_database_is_reached_as_its_administrator_over_verified_and_bound_tls(folder: ClusterFolder) -> None:
    expected = conninfo_to_dict(PLAIN) | {
        "user": "administrator",
        "password": folder.security.password("administrator"),
        "sslmode": "verify-full",
        "sslrootcert": str(folder.path / "security" / "ca.pem"),
        "channel_binding": "require",
    }
    assert conninfo_to_dict(DemoAccess(folder).dsn("flights")) == expected


def test_a_client_of_a_secured_cluster_has_its_settings(folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(demo_access, "connect", lambda uri, **options: seen.update(options, uri=uri))
    DemoAccess(folder).client()
    assert seen["uri"] == folder.metadata_uri
    assert (seen["settings"].bookie_tls, seen["settings"].user) == ("required", "operator")
    assert seen["security"].required
    assert seen["metadata"].uri == folder.metadata_uri


def test_driver_and_executors_of_spark_get_files_and_no_secrets(folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIBPQ_VARIABLES:
        monkeypatch.setenv(name, "a user's own")
    access = DemoAccess(folder)
    variables = {"TRIPLICATE_CONFIG": str(folder.security.client_file), KEYS_VARIABLE: "/etc/triplicate/keys.toml"}
    assert access.spark_settings == {f"spark.executorEnv.{name}": value for name, value in variables.items()}
    before = dict(os.environ)
    with access.in_environment():
        assert {name: os.environ[name] for name in variables} == variables
        assert not set(LIBPQ_VARIABLES) & set(os.environ), "they would override the role and the password of the settings"
    assert dict(os.environ) == before


def test_an_open_cluster_is_reached_in_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = DemoAccess(ClusterFolder(tmp_path, "", MEMBERS))
    assert access.dsn("flights") == PLAIN
    assert access.spark_settings == {}
    client: Any = None
    administrator: Administrator | None = access.administrator(client)
    assert administrator is None
    monkeypatch.setenv("PGUSER", "somebody")
    before = dict(os.environ)
    with access.in_environment():
        assert dict(os.environ) == before


@pytest.mark.parametrize("secured", [False, True])
def test_variables_of_another_cluster_do_not_reach_spark(
    folder: ClusterFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, secured: bool
) -> None:
    others = {
        "TRIPLICATE_CONFIG": "/other/client.toml",
        "TRIPLICATE_METADATA": "zk://other:2181/ledgers",
        "TRIPLICATE_METADATA_USER": "other",
        "TRIPLICATE_CLIENT_USER": "other",
        "TRIPLICATE_SECURITY_CA_FILE": "/other/ca.pem",
    }
    for name, value in {**others, KEYS_VARIABLE: "/own/keys"}.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    access = DemoAccess(folder if secured else ClusterFolder(tmp_path, "", MEMBERS))
    with access.in_environment():
        found = {name: os.environ[name] for name in others if name in os.environ}
        assert found == ({"TRIPLICATE_CONFIG": str(folder.security.client_file)} if secured else {})
        assert os.environ[KEYS_VARIABLE] == "/own/keys"
    assert dict(os.environ) == before
