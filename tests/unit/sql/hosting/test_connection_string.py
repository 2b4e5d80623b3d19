"""The connection string of a database names every node, so that a client finds the leader."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triplicate.errors import EnvironmentFault
from triplicate.replica import Candidate
from triplicate.sql import DatabaseInfo, connection_string

EMPTY = DatabaseInfo("shop", bytes(16), "database.shop.00000000", 0)


def info(*addresses: str, name: str = "shop") -> DatabaseInfo:
    nodes = tuple(Candidate(node_id=f"node-{number}", address=address, position=0) for number, address in enumerate(addresses))
    return replace(EMPTY, name=name, nodes=nodes)


def test_all_nodes_are_named_and_the_leader_is_asked_for() -> None:
    found = connection_string(info("10.0.0.1:5432", "10.0.0.2:5433"), user="me")
    assert found == "host=10.0.0.1,10.0.0.2 port=5432,5433 dbname=shop user=me target_session_attrs=read-write"


def test_the_user_is_left_to_the_client_and_any_node_will_do_where_asked() -> None:
    assert connection_string(info("h:1"), any_node=True) == "host=h port=1 dbname=shop target_session_attrs=any"


def test_addresses_of_ipv6_and_names_with_spaces_are_written_as_libpq_reads_them() -> None:
    import psycopg

    found = connection_string(info("[fd00::1]:5432", name="it's a \\ shop"))
    assert psycopg.conninfo.conninfo_to_dict(found) == {
        "host": "fd00::1",
        "port": "5432",
        "dbname": "it's a \\ shop",
        "target_session_attrs": "read-write",
    }


def test_a_database_without_nodes_is_reported_with_the_cure() -> None:
    with pytest.raises(EnvironmentFault, match="no node serves database shop; start one with"):
        connection_string(EMPTY)


def test_nodes_with_tls_are_verified() -> None:
    secured = replace(info("h:1"), has_tls=True)
    found = connection_string(secured, user="me", ca_file="/etc/our certificates/ca.pem")
    assert found.endswith(" target_session_attrs=read-write sslmode=verify-full sslrootcert='/etc/our certificates/ca.pem'")
    assert connection_string(secured).endswith(" sslmode=verify-full")
    assert "ssl" not in connection_string(info("h:1"), ca_file="/etc/ca.pem")
