"""A request on its way through the bookie, and who waits for its answer."""

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
        """False while the peer does not take what it was sent, or the connection is closed."""

    @property
    def is_gone(self) -> bool:
        """The connection is closed: nobody waits for answers."""

    def respond(self, response: Response, frame: bytes) -> None:
        """Send an answer. Nothing is sent on a connection that is gone."""

    def reads_done(self) -> None:
        """Called when `reads` has become shorter."""


@dataclass(slots=True, eq=False)
class RequestContext:
    """One request of one connection. `handle` is its ledger's, for requests about one whose state matters."""

    request: Request
    peer: Peer
    dialect: Dialect
    tag: int
    """What the dialect needs beside the answer: version 2 the request's version, version 3 its transaction."""
    handle: LedgerHandle | None = None
    lac_update_ms: int | None = None
    """Of a long poll: when the last-add-confirmed advanced, milliseconds since the epoch."""
    urgent: bool = False
    """A read that does not wait for the pace of those who catch up."""

    @property
    def ledger(self) -> LedgerHandle:
        assert self.handle is not None, "requests about a ledger come with its handle"
        return self.handle

    def answer(self, response: Response) -> None:
        self.peer.respond(response, self.dialect.encode(response, self.tag))

    def refuse(self, status: Status) -> None:
        """Answer without having done anything."""
        self.answer(v3.refusal_of(self.request, status))
