"""Paths of ledgers lead back to their ids, and listing follows the order of ids."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triplicate.metadata import FlatPaths, HierarchicalPaths, LedgerPaths, LongHierarchicalPaths

IDS = st.one_of(st.integers(0, 2**63 - 1), st.integers(0, 10**5), st.integers(2**31 - 3, 2**31 + 3))
LAYOUTS = st.sampled_from([HierarchicalPaths(), LongHierarchicalPaths(), FlatPaths()])


def walk(paths: LedgerPaths, tree: dict[str, list[str]], relative: str = "") -> list[int]:
    names = tree.get(relative, [])
    found = paths.ledgers(relative, names)
    for name in paths.subdirectories(relative, names):
        found += walk(paths, tree, f"{relative}/{name}")
    return found


@given(LAYOUTS, st.lists(IDS, unique=True, max_size=20))
def test_a_walk_finds_every_ledger_once_in_ascending_order(paths: LedgerPaths, ids: list[int]) -> None:
    tree: dict[str, list[str]] = {"": ["LAYOUT", "INSTANCEID", "available", "cookies", "idgen", "ID-0000000003"]}
    for ledger_id in ids:
        *parents, leaf = paths.path(ledger_id)[1:].split("/")
        above = ""
        for name in [*parents, leaf]:
            names = tree.setdefault(above, [])
            if name not in names:
                names.append(name)
            above += f"/{name}"
    assert walk(paths, tree) == sorted(ids)
