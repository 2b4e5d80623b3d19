"""Bearer tokens, compared in a time that does not depend on how much of a wrong one is right.

Several are valid at a time, so that a token is replaced without an outage: add the new one, give it to the clients, remove the old one.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from triplicate.errors import ConfigError

TOKENS_MAX = 8
TOKEN_CHARACTERS_LEAST = 16
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
"""Characters of a token. Source: RFC 6750, 2.1."""


class BearerTokens:
    """The valid tokens: the lines of a text.

    Raises:
        ConfigError: there is none or there are too many, or one is short or has characters that a header cannot hold. The error does not
            repeat it.
    """

    __slots__ = ("_digests",)

    def __init__(self, text: str) -> None:
        tokens = [line.strip() for line in text.splitlines() if line.strip()]
        if not 1 <= len(tokens) <= TOKENS_MAX:
            raise ConfigError(f"holds {len(tokens)} tokens: write one on each line, at most {TOKENS_MAX}")
        for number, token in enumerate(tokens, 1):
            if len(token) < TOKEN_CHARACTERS_LEAST:
                raise ConfigError(f"token {number} has fewer than {TOKEN_CHARACTERS_LEAST} characters, and could be guessed")
            if not _TOKEN.fullmatch(token):
                raise ConfigError(f"token {number} has characters that are not letters, digits or ._~+/=-")
        self._digests = tuple(_digest(token) for token in tokens)

    def admits(self, token: str) -> bool:
        """Whether a token is one of them."""
        # Digests have one length, so that the time does not depend on that either. Every one is compared.
        digest, found = _digest(token), False
        for each in self._digests:
            found |= hmac.compare_digest(digest, each)
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
