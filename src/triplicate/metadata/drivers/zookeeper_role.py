"""Whether a ZooKeeper server leads the others, by its answer to the four letters `srvr`, which every server answers unless it is forbidden.

Source: ZooKeeper Administrator's Guide, "The Four Letter Words".
"""

from __future__ import annotations

import asyncio
from typing import cast

from triplicate.runtime import Host, deadline_after, resolve, timeout_at

QUESTION = b"srvr"
ANSWER_LIMIT_S = 0.2
"""The server is on this machine."""
ANSWER_BYTES_MAX = 16_384


class _Answer(asyncio.Protocol):
    """A connection on which the server answers once, and which it closes then."""

    def __init__(self) -> None:
        self.text = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(QUESTION)

    def data_received(self, data: bytes) -> None:
        self.text += data
        if len(self.text) > ANSWER_BYTES_MAX:
            self.text = b""  # That is no answer to this question.
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        resolve(self.ended, None)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def leads(host: Host, address: str, port: int) -> bool:
    """Whether the server at an address says that it leads. False if it does not serve, says nothing, or is alone."""
    answer = _Answer()
    try:
        async with timeout_at(deadline_after(host.clock, ANSWER_LIMIT_S)):
            await host.network.connect(lambda: answer, address, port)
            await answer.ended
    except (OSError, TimeoutError):
        return False
    finally:
        answer.abort()
    return b"Mode: leader" in answer.text.splitlines()
