"""Authentication of the client to a bookie, before the first request of a new connection.

Source: BookKeeper `AuthHandler.ClientSideHandler`, `ClientAuthProvider`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

from triplicate.errors import TriplicateError, Unauthorized
from triplicate.security import LoginConnection
from triplicate.wire import AuthResponse, Status, v3


class Authenticator(Protocol):
    """A plugin of the user.

    Given to a client as it is, one object serves all connections, which may authenticate at the same time. A plugin with a state for each
    connection is a `ConnectionAuthenticator`.
    """

    plugin: str
    """The plugin's name; the bookie's plugin must have the same."""

    def first_token(self) -> bytes:
        """The first token to send; may be empty."""

    def answer(self, token: bytes) -> bytes | None:
        """The token to send in reply to one from the bookie; None when the authentication is complete."""


@runtime_checkable
class ConnectionAuthenticator(Protocol):
    """A plugin that has a state for each connection. Source: BookKeeper `ClientAuthProvider.Factory`."""

    def begin(self, connection: LoginConnection) -> Authenticator:
        """The authenticator of one new connection."""


Begin = Callable[[LoginConnection], Authenticator]
"""Makes the authenticator of one new connection."""


def begin_of(authenticate: Authenticator | ConnectionAuthenticator | None) -> Begin | None:
    """How each connection begins to authenticate; None for no authentication."""
    if authenticate is None:
        return None
    if isinstance(authenticate, ConnectionAuthenticator):
        return authenticate.begin
    shared = authenticate
    return lambda _: shared


class TokenExchange:
    """The exchange of tokens on one connection, without its input and output: the tokens to send, by the answers that came.

    Args:
        is_required: whether a bookie without authentication is refused.

    Raises (both methods):
        Unauthorized: the bookie refused, or the plugin raised.
    """

    def __init__(self, begin: Begin, connection: LoginConnection, *, is_required: bool = False) -> None:
        self._is_required = is_required
        self._authenticator = authenticator = _call_plugin("", partial(begin, connection))
        self.plugin = authenticator.plugin
        self._answered = 0

    def first_token(self) -> bytes:
        """The token to send first."""
        return _call_plugin(self.plugin, self._authenticator.first_token)

    def next_token(self, answer: AuthResponse) -> bytes | None:
        """The token to send after an answer; None when the bookie has accepted, or requires no authentication."""
        self._answered += 1
        if answer.status is not Status.OK:
            raise Unauthorized(
                f"it refused the authentication by the plugin {self.plugin!r} ({answer.status.name}); check client.user, the password "
                "and client.mechanism, or what was given as `authenticate`"
            )
        if answer.plugin == v3.AUTH_DISABLED and self._answered == 1:
            if self._is_required:
                raise Unauthorized("it answers that it has no authentication, and client.bookie_login requires it")
            return None
        if answer.plugin != self.plugin:
            raise Unauthorized(f"it authenticates by the plugin {answer.plugin!r}, this client by {self.plugin!r}; see client.mechanism")
        return _call_plugin(self.plugin, partial(self._authenticator.answer, answer.payload))


Said = TypeVar("Said")


def _call_plugin(plugin: str, say: Callable[[], Said]) -> Said:
    try:
        return say()
    except TriplicateError as error:
        raise Unauthorized(str(error)) from error
    except Exception as error:
        # A token that the plugin does not understand fails this connection, not the whole client.
        raise Unauthorized(f"the plugin {plugin!r} failed: {error!r}") from error
