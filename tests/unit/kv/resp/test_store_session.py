"""The answers of a node that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from triplicate.errors import NotLeading
from triplicate.kv.resp.store_session import read_only, refusal_of


@dataclass
class Followed:
    """The part of a store that the answers need."""

    leader_node: str | None = None
    leader_resp_address: str | None = None
    is_taking_over: bool = False
    name: str = "shop"


@pytest.mark.parametrize(
    ("store", "text"),
    [
        (Followed(), "the leader of store shop is not known yet"),
        (Followed("n2"), "the leader of store shop is node n2, which does not serve RESP (resp.serve)"),
        (Followed("n2", "db2:6379"), "the leader of store shop is node n2 at db2:6379"),
        (Followed("n1", "db1:6379", is_taking_over=True), "it was elected to lead store shop, and takes it over: try again"),
    ],
)
def test_a_refused_change_names_the_address_at_which_the_leader_serves_clients_of_redis(store: Any, text: str) -> None:
    answer = read_only(store).text
    assert answer.startswith("READONLY ")
    assert answer.endswith(f"; {text}")
    assert refusal_of(NotLeading("this node does not lead", "db2:5432"), store).text == answer
