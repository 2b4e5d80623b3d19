"""Roles, lags and addresses that the database commands derive from the copies in the metadata."""

from __future__ import annotations

import pytest

from triplicate.cli.data_commands.database_command import lag_of, role_of
from triplicate.errors import EnvironmentFault
from triplicate.replica import Candidate
from triplicate.sql import DatabaseInfo, connection_string


def info(*nodes: Candidate, leader: str | None = "a") -> DatabaseInfo:
    return DatabaseInfo("shop", b"i" * 16, "database.shop", 0, leader=leader, nodes=nodes)


LEADER = Candidate("a", "127.0.0.1:1", 9, "leader")
BEHIND = Candidate("b", "127.0.0.1:2", 4, "follower")
WRONG = Candidate("c", "127.0.0.1:3", 7, "diverged", "rows differ")
OLD = Candidate("d", "127.0.0.1:4", 9)
"""Of a release that does not publish its role."""


def test_roles_and_lags_of_old_and_new_nodes() -> None:
    shown = info(LEADER, BEHIND, WRONG, OLD)
    assert [role_of(one, shown) for one in shown.nodes] == ["leader", "follower", "diverged", "follower"]
    assert [lag_of(one, shown) for one in shown.nodes] == [0, 5, 2, 0]
    assert role_of(OLD, info(OLD, leader="d")) == "leader"


def test_a_connection_string_names_the_nodes_whose_copies_are_served() -> None:
    text = connection_string(info(LEADER, BEHIND, WRONG), any_node=False)
    assert text.startswith("host=127.0.0.1,127.0.0.1 port=1,2 dbname=shop ")


def test_it_is_told_why_no_node_serves() -> None:
    with pytest.raises(EnvironmentFault, match="no node serves database shop; start one with"):
        connection_string(info(leader=None), any_node=True)
    with pytest.raises(EnvironmentFault, match=r"no node serves database shop: no copy is usable \(c diverged: rows differ\)"):
        connection_string(info(WRONG, leader=None), any_node=True)
