"""A client whose settings require the login of bookies uses one that answers that it has no authentication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = [
    "tests/unit/client/connection/test_authentication.py::test_a_bookie_without_authentication_is_refused_where_its_login_is_required[True]"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.connection.authentication import Begin, TokenExchange
    from triplicate.security import LoginConnection

    begin_exchange = TokenExchange.__init__

    def lenient(self: Any, begin: Begin, connection: LoginConnection, *, is_required: bool = False) -> None:
        begin_exchange(self, begin, connection)

    patch(TokenExchange, "__init__", lenient)
