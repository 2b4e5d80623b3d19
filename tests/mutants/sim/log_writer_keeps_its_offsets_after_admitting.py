"""What waited while publishers' ledgers were listed keeps the offsets that it had before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "logs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log import writer
    from triplicate.log.batch import Item

    def keep(items: Sequence[Item], first_offset: int) -> int:
        return items[-1].first_offset + items[-1].encoded.count if items else first_offset

    patch(writer, "renumber", keep)
