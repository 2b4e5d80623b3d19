"""Descriptions of clients are one line each, for any name of their users."""

from __future__ import annotations

from triplicate.kv.resp.core.server_info import ClientFacts


def test_the_name_of_a_user_adds_no_line_and_no_fact_to_the_list_of_clients() -> None:
    facts = ClientFacts(1, "[::1]:5", "shop", "eve\nid=2 user=\u2028Łukasz\0", "orders", 3, "py", 0, 9)
    assert facts.line == (
        "id=1 addr=[::1]:5 name=shop age=9 db=0 sub=0 user=eve\\x0aid=2\\x20user=\\xe2\\x80\\xa8Łukasz\\x00 store=orders lib-name=py resp=3"
    )
    assert ClientFacts(1, "", "", "", "orders", 2, "", 0, 0).line.split(" ")[6] == "user=default"
