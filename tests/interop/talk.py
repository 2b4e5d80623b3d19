"""One connection to one bookie, for requests of either version and for raw frames."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

from tests.interop.bookies import BookieProcess
from triplicate.ledger import decode_availability
from triplicate.wire import (
    BookieInfoResponse,
    FrameBuffer,
    ListEntriesResponse,
    ReadResponse,
    Request,
    Response,
    v2,
    v3,
)

LIMIT_S = 10.0


CLOSED = "closed"


class Talk:
    """One connection to one bookie, one request at a time."""

    def __init__(self, bookie: BookieProcess, wire: str) -> None:
        self._wire = wire
        self._connection = socket.create_connection(("127.0.0.1", bookie.port), timeout=LIMIT_S)
        self._frames = FrameBuffer()
        self._txn_id = 0

    def ask(self, request: Request) -> Response | str:
        self._txn_id += 1
        if self._wire == "v2":
            body = self.send(v2.encode_request(request))
            return CLOSED if body is None else comparable(v2.decode_response(body))
        body = self.send(v3.encode_request(request, self._txn_id))
        if body is None:
            return CLOSED
        txn_id, response = v3.decode_response(body)
        assert txn_id == self._txn_id
        return comparable(response)

    def send(self, data: bytes) -> bytes | None:
        """Send a frame; return the body of the answer, or None if the bookie closes the connection."""
        self._connection.sendall(data)
        return next(self._bodies(), None)

    def _bodies(self) -> Iterator[bytes]:
        while True:
            try:
                data = self._connection.recv(1 << 16)
            except ConnectionError:
                return
            if not data:
                return
            yield from map(bytes, self._frames.bodies(data))

    def patience(self, limit_s: float) -> None:
        self._connection.settimeout(limit_s)

    def close(self) -> None:
        self._connection.close()


def comparable(response: Response) -> Response:
    """The answer without the parts that differ between bookies: time, disks, and the grouping of runs of entries."""
    if isinstance(response, ReadResponse):
        return replace(response, lac_update_ms=None, body=None if response.body is None else bytes(response.body))
    if isinstance(response, BookieInfoResponse):
        return replace(response, total_bytes=1, free_bytes=1)
    if isinstance(response, ListEntriesResponse) and response.availability is not None:
        found = decode_availability(response.availability)
        return replace(response, availability=repr([entry_id for entry_id in range(64) if entry_id in found]).encode())
    return response
