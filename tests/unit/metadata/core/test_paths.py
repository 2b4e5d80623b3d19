"""Paths of ledgers. Source: BookKeeper `HierarchicalLedgerManager`, `LongHierarchicalLedgerManager`, `FlatLedgerManager`,
`ZkLedgerUnderreplicationManager`."""

from __future__ import annotations

import pytest

from triplicate.errors import ArgumentError
from triplicate.metadata import FlatPaths, HierarchicalPaths, LongHierarchicalPaths, own_paths


@pytest.mark.parametrize("ledger_id", [-1, 2**63])
def test_an_id_outside_63_bits_is_refused(ledger_id: int) -> None:
    for paths in (HierarchicalPaths(), LongHierarchicalPaths(), FlatPaths()):
        with pytest.raises(ArgumentError):
            paths.path(ledger_id)


def test_listing_skips_what_is_no_ledger() -> None:
    names = [
        "LAYOUT",
        "INSTANCEID",
        "available",
        "cookies",
        "idgen",
        "idgen-long",
        "underreplication",
        "ID-0000000001",
        "001",
        "00",
        "1",
        "0x",
    ]
    assert HierarchicalPaths().subdirectories("", names) == ["00", "001"]
    assert LongHierarchicalPaths().subdirectories("", names) == ["001"]
    assert FlatPaths().subdirectories("", names) == []
    assert HierarchicalPaths().ledgers("", [*names, "L0000000001"]) == []
    assert FlatPaths().ledgers("", [*names, "L0000000012", "L0000000003"]) == [3, 12]
    assert HierarchicalPaths().ledgers("/00/0001", ["L0002", "L0001", "L1", "X0001", "0001"]) == [10001, 10002]
    assert HierarchicalPaths().ledgers("/000/0001", ["L0001"]) == []
    assert HierarchicalPaths().subdirectories("/00/0001", ["0001"]) == []


def test_our_own_nodes_lie_under_the_instance() -> None:
    root = own_paths.own_root("id")
    assert root == "/triplicate/id"
    assert own_paths.log_path(root, "flights") == "/triplicate/id/logs/flights"
    assert own_paths.page_path(root, "flights", 7) == "/triplicate/id/logs/flights/pages/0000000007"
    assert own_paths.publisher_path(root, "flights", "a/b c") == "/triplicate/id/logs/flights/publishers/a%2Fb%20c"
    assert own_paths.database_path(root, "main") == "/triplicate/id/databases/main"
    assert own_paths.trash_path(root, 5) == "/triplicate/id/trash/0000000000000000005"


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "-x", "a/b", "a b", "é", "x" * 256])
def test_a_name_that_cannot_be_a_node_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError):
        own_paths.log_path("/triplicate/id", name)


@pytest.mark.parametrize("text", ["a", ".", "..", "a.b", "a/b", "%2F", "é ü", "\n"])
def test_any_application_name_can_be_encoded_and_read_back(text: str) -> None:
    encoded = own_paths.encode_name(text)
    assert "/" not in encoded
    assert encoded not in (".", "..")
    assert own_paths.decode_name(encoded) == text


def test_an_empty_application_name_is_refused() -> None:
    with pytest.raises(ArgumentError):
        own_paths.encode_name("")
