"""An entry's header calls everything before it confirmed."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.add_pipeline import AddPipeline

    put = AddPipeline.put

    def optimistic(self: AddPipeline, entry_id: int, payload: bytes) -> bytes:
        confirmed, self.last_add_confirmed = self.last_add_confirmed, entry_id - 1
        try:
            return put(self, entry_id, payload)
        finally:
            self.last_add_confirmed = confirmed

    patch(AddPipeline, "put", optimistic)
