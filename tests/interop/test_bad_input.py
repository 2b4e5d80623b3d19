"""The bad input of ``tests/process/test_bad_input.py``, sent to Apache's bookie as well: both must react alike.

Intended differences, where ours is stricter, are listed below.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.interop.bookies import BookieProcess, Cluster
from tests.interop.stand import Stand
from tests.process.test_bad_input import ANSWERED_V2, ANSWERED_V3, CLOSING
from triplicate.wire import AddResponse, FrameBuffer, Status, v3

LIMIT_S = 10.0
CLOSED = "closed"

STRICTER: dict[str, str] = {
    # It stores the entry under the ids inside.
    "an add whose entry is another one": v3.encode_response(AddResponse(Status.OK, 9, 4), 5)[4:].hex(),
}
"""Name → the reaction of Apache's bookie where ours is stricter: a body in hexadecimal, or `CLOSED`."""

SHORT_KEY = "an add with a key of one byte"
# Requests that Apache's bookie stores come late, so that the others find no ledger. The short key comes last: an existing ledger refuses
# it, a missing one would be created with it.
ANSWERED: dict[str, tuple[bytes, bytes]] = dict(
    sorted([*ANSWERED_V2.items(), *ANSWERED_V3.items()], key=lambda item: (item[0] == SHORT_KEY, item[0] in STRICTER, item[0]))
)


@pytest.fixture(scope="module")
def pair(stand: Stand) -> Iterator[Cluster]:
    """One bookie of ours and one of Apache's, not shared with other tests, since the input may harm them."""
    cluster = stand.new_cluster("bad-input", 1, 1)
    yield cluster
    cluster.stop()


def said(bookie: BookieProcess, frame: bytes) -> str:
    """The first answer to a frame, in hexadecimal, or `CLOSED`."""
    frames = FrameBuffer()
    with socket.create_connection(("127.0.0.1", bookie.port), timeout=LIMIT_S) as connection:
        connection.sendall(frame)
        while True:
            try:
                data = connection.recv(1 << 16)
            except ConnectionError:
                return CLOSED
            if not data:
                return CLOSED
            for body in frames.bodies(data):
                return bytes(body).hex()


@pytest.mark.parametrize("name", CLOSING)
def test_both_bookies_close_the_connection_on_the_same_frames(pair: Cluster, name: str) -> None:
    ours, theirs = pair.bookies
    assert said(ours, CLOSING[name]) == CLOSED
    assert said(theirs, CLOSING[name]) == STRICTER.get(name, CLOSED)


@pytest.mark.parametrize("name", ANSWERED)
def test_both_bookies_give_the_same_error_answers(pair: Cluster, name: str) -> None:
    ours, theirs = pair.bookies
    asked, answer = ANSWERED[name]
    assert said(ours, asked) == answer.hex()
    assert said(theirs, asked) == STRICTER.get(name, answer.hex())
