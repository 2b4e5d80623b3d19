"""CLIENT LIST shows the name of a user with its line breaks: one connection can look like several."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/kv/resp/core/test_server_info.py::test_the_name_of_a_user_adds_no_line_and_no_fact_to_the_list_of_clients"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.resp.core import server_info

    patch(server_info, "_word", lambda text: text)
