"""Replay does not verify the checksum of a journal group."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from triplicate.bookie.core.checksum import Buffer, crc32c_of

KIND = "ledgers"
CHECKERS = ("bookies", "same_order_for_all", "closed_entries_have_their_copies")


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core import journal_format

    class Agreeable(int):
        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = int.__hash__

    def whatever(buffers: Iterable[Buffer], value: int = 0) -> int:
        return Agreeable(crc32c_of(buffers, value))

    patch(journal_format, "crc32c_of", whatever)
