"""The role, the password and the authority with which the change feed asks the nodes of a database for columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from triplicate.errors import ConfigError, EnvironmentFault
from triplicate.replica import Candidate
from triplicate.spark.cluster import database_tables
from triplicate.sql import DatabaseInfo

LIBPQ_VARIABLES = ("PGUSER", "PGPASSWORD", "PGPASSFILE")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of client commands of a secured cluster."""
    for name in LIBPQ_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    password = tmp_path / "administrator.password"
    password.touch(mode=0o600)
    password.write_text("of the settings\n")
    file = tmp_path / "client.toml"
    file.write_text(
        f'[security]\nca_file = "/etc/triplicate/ca.pem"\n\n[database_client]\nrole = "administrator"\npassword_file = "{password}"\n'
    )
    monkeypatch.setenv("TRIPLICATE_CONFIG", str(file))
    return file


def asked_with(monkeypatch: pytest.MonkeyPatch, *, has_tls: bool = True) -> dict[str, Any]:
    """The options of libpq that protect a connection, as `table_columns` gives them."""
    seen: dict[str, Any] = {}

    def connect(**options: Any) -> None:
        seen.update(options)
        raise psycopg.OperationalError("seen")

    info = DatabaseInfo("shop", b"i" * 16, "database.shop", 0, nodes=(Candidate("a", "127.0.0.1:1", 9, "leader"),), has_tls=has_tls)
    monkeypatch.setattr(psycopg, "connect", connect)
    monkeypatch.setattr(database_tables, "_info", lambda _uri, _database: info)
    with pytest.raises(EnvironmentFault, match="seen"):
        database_tables.table_columns("sqlite:///cluster", "shop", "orders")
    return {name: seen[name] for name in ("user", "password", "sslmode", "sslrootcert") if name in seen}


def test_a_secured_node_is_asked_with_the_role_and_the_authority_of_the_named_file(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"user": "administrator", "password": "of the settings", "sslmode": "verify-full", "sslrootcert": "/etc/triplicate/ca.pem"}
    assert asked_with(monkeypatch) == expected


def test_variables_of_libpq_override_the_settings(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "typed")
    assert "password" not in asked_with(monkeypatch), "libpq takes the variable itself"
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGUSER", "reports")
    found = asked_with(monkeypatch)
    assert found["user"] == "reports"
    assert "password" not in found, "the password is another role's"


def test_an_open_node_is_asked_without_tls_and_by_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRIPLICATE_CONFIG", *LIBPQ_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    assert asked_with(monkeypatch, has_tls=False) == {"user": "spark"}


def test_a_password_that_others_may_read_is_refused(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (settings.parent / "administrator.password").chmod(0o644)
    with pytest.raises(ConfigError, match=r"database_client\.password_file") as refused:
        asked_with(monkeypatch)
    assert "of the settings" not in str(refused.value)
