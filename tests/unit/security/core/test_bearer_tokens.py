"""Bearer tokens: which are right, and which texts hold none."""

from __future__ import annotations

import hmac
from types import SimpleNamespace

import pytest

from triplicate.errors import ConfigError
from triplicate.security.core.bearer_tokens import TOKENS_MAX, BearerTokens

OLD, NEW = "the-old-token-of-a-test", "the-new-token-of-a-test"


def test_every_line_is_a_token_and_nothing_else_is() -> None:
    tokens = BearerTokens(f"{OLD}\n\n  {NEW}  \r\n")
    assert tokens.admits(OLD)
    assert tokens.admits(NEW)
    for wrong in ("", OLD[:-1], OLD + "x", OLD.upper(), f"{OLD}\n{NEW}", " " + OLD, "\udcff"):
        assert not tokens.admits(wrong), wrong


def test_all_tokens_are_compared_whole_whichever_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr("triplicate.security.core.bearer_tokens.hmac", SimpleNamespace(compare_digest=compare))
    tokens = BearerTokens(f"{OLD}\n{NEW}")
    for candidate in (OLD, NEW, "x", OLD + NEW):
        compared.clear()
        tokens.admits(candidate)
        assert compared == [(32, 32), (32, 32)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "holds 0 tokens"),
        ("\n \n", "holds 0 tokens"),
        ("\n".join(f"token-number-{number:05}" for number in range(TOKENS_MAX + 1)), "holds 9 tokens"),
        ("tooshort", "fewer than 16"),
        (f"{OLD}\na token with spaces in it", "token 2 has characters"),
        ("ein-schlüssel-mit-umlaut", "token 1 has characters"),
    ],
)
def test_a_text_without_valid_tokens_is_refused_and_not_repeated(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        BearerTokens(text)
    for line in text.split():
        assert len(line) < 8 or line not in str(refused.value)
