"""Facts that the commands of key-value stores derive from the copies in the metadata."""

from __future__ import annotations

from triplicate.cli.data_commands.kv_command import _facts, _leader
from triplicate.kv import StoreInfo
from triplicate.replica import Candidate


def test_lags_count_from_the_most_advanced_copy() -> None:
    nodes = (
        Candidate("a", "127.0.0.1:1", 9, "leader", resp_address="127.0.0.1:3"),
        Candidate("b", "127.0.0.1:2", 4, "diverged", "damaged"),
    )
    info = StoreInfo("basket", b"i" * 16, "store.basket", 0, 750, leader="a", nodes=nodes)
    facts = _facts(info)
    assert [(one["lag"], one["reason"]) for one in facts["nodes"]] == [(0, None), (5, "damaged")]  # type: ignore[attr-defined]
    assert [one["resp"] for one in facts["nodes"]] == ["127.0.0.1:3", None]  # type: ignore[attr-defined]
    assert _leader(info) == "a"


def test_a_store_that_is_being_dropped_is_shown_as_such() -> None:
    assert _leader(StoreInfo("basket", b"i" * 16, "store.basket", 0, 750, is_dropping=True, leader="a")) == "dropping"
    assert _leader(StoreInfo("basket", b"i" * 16, "store.basket", 0, 750)) == "none"
