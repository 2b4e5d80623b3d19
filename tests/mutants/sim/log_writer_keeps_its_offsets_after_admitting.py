"""What waited while publishers' ledgers were listed is acknowledged with the offsets that it had before."""

from __future__ import annotations

from collections.abc import Callable, Iterable

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.writing import log_writer
    from triplicate.log.writing.entry_builder import PendingEntry, renumber

    before: dict[int, int] = {}

    def remember(items: Iterable[PendingEntry], first_offset: int) -> int:
        waiting = list(items)
        for item in waiting:
            before.setdefault(id(item), item.first_offset)
        return renumber(waiting, first_offset)

    def settle(self: PendingEntry) -> None:
        first_offset = before.pop(id(self), self.first_offset)
        if self.future is not None and not self.future.done():
            self.future.set_result(range(first_offset, first_offset + self.encoded.count))

    patch(log_writer, "renumber", remember)
    patch(PendingEntry, "settle", settle)
