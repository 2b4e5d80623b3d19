"""A worker copies entries without verifying their digests."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client import BookieCopies
    from triplicate.client.bookie_copies import BATCH_SIZE_BYTES
    from triplicate.client.connection.single_request import send_request
    from triplicate.ledger import EntryCodec
    from triplicate.wire import BatchAnswer, BatchReadRequest, Status

    async def unverified(self: BookieCopies, codec: EntryCodec, entry_id: int, bookie_id: str) -> bytes | None:
        return await self._body(codec.ledger_id, entry_id, bookie_id)

    async def unverified_batch(
        self: BookieCopies, codec: EntryCodec, first: int, count: int, max_bytes: int, bookie_id: str
    ) -> list[bytes]:
        request = BatchReadRequest(codec.ledger_id, first, 0, count, max_bytes)
        answer = await send_request(self._pool.batch_channel(bookie_id), request, BatchAnswer)
        bodies: list[bytes] = []
        position = answer.position
        while answer.status is Status.OK and position < answer.end and len(bodies) < count:
            begin = position + BATCH_SIZE_BYTES
            position = begin + int.from_bytes(answer.data[position:begin], "big")
            bodies.append(bytes(answer.data[begin:position]))
        return bodies

    patch(BookieCopies, "read", unverified)
    patch(BookieCopies, "read_batch", unverified_batch)
    patch(BookieCopies, "_is_right", lambda self, codec, body, entry_id, bookie_id: True)
