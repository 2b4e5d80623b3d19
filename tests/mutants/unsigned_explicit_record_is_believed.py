"""An explicit last-add-confirmed record is used although its digest fails."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/client/read/test_lac_read.py::test_a_damaged_record_says_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.read.lac_read import LacRead

    def believe(self: LacRead, bookie_id: str, record: bytes) -> bool:
        self.explicit = max(self.explicit, int.from_bytes(record[8:16], signed=True))
        return True

    patch(LacRead, "_process_record", believe)
