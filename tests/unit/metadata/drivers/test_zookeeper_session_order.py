"""Which of ZooKeeper's servers a session tries first."""

from __future__ import annotations

import pytest

from triplicate.metadata.drivers.zookeeper_session import is_own_address, near_first, own_server

SERVERS = [("a", "10.0.0.1", 2181), ("b", "10.0.0.2", 2181), ("c", "10.0.0.3", 2181)]


@pytest.mark.parametrize(
    ("own", "order"), [("10.0.0.3", "cab"), ("10.0.0.1", "abc"), ("10.0.0.9", "abc"), ("", "abc")], ids=["last", "first", "none", "all"]
)
def test_the_only_server_of_this_machine_comes_first(own: str, order: str) -> None:
    found = near_first(SERVERS, own_server(SERVERS, lambda address: not own or address == own))
    assert "".join(name for name, _, _ in found) == order


def test_addresses_of_this_machine_are_known() -> None:
    assert is_own_address("127.0.0.1")
    assert not is_own_address("192.0.2.1"), "an address for documentation"
