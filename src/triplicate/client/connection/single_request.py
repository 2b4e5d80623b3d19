"""One awaited request to one bookie, for infrequent operations."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from triplicate.client.connection.bookie_channel import BookieChannel
from triplicate.errors import BookieError
from triplicate.runtime import fail, resolve
from triplicate.wire import Request, Response

Answer = TypeVar("Answer")


async def send_request(channel: BookieChannel, request: Request, kind: type[Answer]) -> Answer:
    """Send a request and return the bookie's answer, which may have any status.

    Raises:
        BookieError: there is no answer, so the outcome is unknown.
    """
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def answered(_: None, response: Response | None, error: BookieError | None) -> None:
        if isinstance(response, kind):
            resolve(future, response)
        else:
            assert error is not None, "a request without an answer has an error"
            fail(future, error)

    channel.call(request, answered, None)
    return await future
