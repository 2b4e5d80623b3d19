"""An entry's header claims every earlier entry as confirmed."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.add_sender import AddSender

    enqueue = AddSender.enqueue

    def optimistic(self: AddSender, entry_id: int, payload: bytes) -> bytes:
        confirmed, self.piggybacked_lac = self.piggybacked_lac, entry_id - 1
        try:
            return enqueue(self, entry_id, payload)
        finally:
            self.piggybacked_lac = confirmed

    patch(AddSender, "enqueue", optimistic)
