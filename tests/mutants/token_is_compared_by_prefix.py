"""A bearer token counts as right if it begins as a right one does."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/security/core/test_bearer_tokens.py::test_every_line_is_a_token_and_nothing_else_is",
    "tests/unit/security/core/test_bearer_tokens.py::test_all_tokens_are_compared_whole_whichever_is_right",
    "tests/unit/runtime/test_metrics_server_guarded.py::test_a_request_without_the_right_token_is_told_nothing",
]


def apply(patch: Any) -> None:
    from triplicate.security.core.bearer_tokens import BearerTokens

    init = BearerTokens.__init__
    kept: dict[int, list[str]] = {}

    def remember(self: BearerTokens, text: str) -> None:
        init(self, text)
        kept[id(self)] = text.split()

    def careless(self: BearerTokens, token: str) -> bool:
        return bool(token) and any(each.startswith(token) for each in kept[id(self)])

    patch(BearerTokens, "__init__", remember)
    patch(BearerTokens, "admits", careless)
