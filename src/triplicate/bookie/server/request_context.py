"""A request that is being served, with the connection that gets its answer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from triplicate.bookie.core.ledger_table import LedgerHandle
from triplicate.bookie.server.dialects import Dialect
from triplicate.wire import Request, Response, Status, v3


class Peer(Protocol):
    """A connection as its requests see it."""

    reads: deque[RequestContext]
    """Reads that wait for the reader's worker."""

    @property
    def accepts_answers(self) -> bool:
        """False while the peer does not read its answers, or the connection is closed."""

    @property
    def is_gone(self) -> bool:
        """Whether the connection is closed."""

    def respond(self, response: Response, frame: bytes) -> None:
        """Send an answer. Nothing is sent on a connection that is gone."""

    def reads_done(self) -> None:
        """Called when `reads` has become shorter."""


@dataclass(slots=True, eq=False)
class RequestContext:
    """One request of one connection. `handle`: its ledger's, for requests that depend on the ledger's state."""

    request: Request
    peer: Peer
    dialect: Dialect
    tag: int
    """The dialect's tag for the answer: in version 2 the request's version, in version 3 its transaction."""
    handle: LedgerHandle | None = None
    lac_update_ms: int | None = None
    """For a long poll: the time when the last-add-confirmed advanced, milliseconds since the epoch."""
    urgent: bool = False
    """A read that is not throttled."""

    @property
    def ledger(self) -> LedgerHandle:
        assert self.handle is not None, "requests about a ledger come with its handle"
        return self.handle

    def answer(self, response: Response) -> None:
        self.peer.respond(response, self.dialect.encode(response, self.tag))

    def refuse(self, status: Status) -> None:
        """Answer with an error, without having done anything."""
        self.answer(v3.refusal_of(self.request, status))
