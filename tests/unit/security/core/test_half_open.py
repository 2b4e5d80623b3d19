"""The number of connections whose clients are not admitted yet."""

from __future__ import annotations

from triplicate.security import HalfOpenConnections


def test_the_oldest_connection_of_an_address_makes_room_for_another() -> None:
    table = HalfOpenConnections[int](100, 2)
    assert [table.add(number, "192.0.2.1") for number in (1, 2, 3)] == [None, None, 1]
    table.remove(2)
    assert table.add(4, "192.0.2.1") is None
    assert table.add(5, "192.0.2.1") == 3
    assert table.add(6, "192.0.2.2") is None
    assert len(table) == 3
    assert list(table) == [4, 5, 6]


def test_the_oldest_of_all_makes_room_where_each_address_has_one() -> None:
    table = HalfOpenConnections[int](3, 10)
    assert [table.add(number, f"192.0.2.{number}") for number in range(5)] == [None, None, None, 0, 1]
    assert list(table) == [2, 3, 4]


def test_a_flood_from_one_address_replaces_its_own_connections() -> None:
    table = HalfOpenConnections[int](10, 9)
    honest = [table.add(number, f"192.0.2.{number}") for number in range(5)]
    closed = [table.add(number, "198.51.100.1") for number in range(100, 200)]
    assert honest == [None] * 5
    assert all(one is None or one >= 100 for one in closed)
    assert len(table) == 10
    assert all(table.add(number, f"192.0.2.{number}") >= 100 for number in range(5, 8))  # type: ignore[operator]


def test_addresses_of_one_network_of_ipv6_count_as_one() -> None:
    table = HalfOpenConnections[int](100, 2)
    assert [table.add(number, f"2001:db8::{number:x}") for number in range(1, 4)] == [None, None, 1]
    assert table.add(4, "2001:db8:0:1::1") is None


def test_connections_may_be_removed_while_they_are_listed() -> None:
    table = HalfOpenConnections[int](10, 10)
    for number in range(5):
        table.add(number, "192.0.2.1")
    for number in table:
        table.remove(number)
    assert len(table) == 0


def test_no_trace_of_a_connection_stays() -> None:
    table = HalfOpenConnections[int](3, 3)
    for number in range(1000):
        table.add(number, f"192.0.2.{number % 200}")
        table.remove(number)
        table.remove(number)
    assert len(table) == 0
    assert not table._addresses
