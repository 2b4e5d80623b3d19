"""A footer is used although its checksum does not match."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/crash/test_flips.py::test_no_flipped_bit_of_an_entry_log_is_returned_as_good"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.entry_log_format import BLOCK_HEADER_BYTES, BlockInfo, BlockType, EntryLogScanner

    block = EntryLogScanner.block

    def unchecked(self: EntryLogScanner, offset: int, known: BlockInfo | None = None) -> tuple[BlockInfo, bytes]:
        info, _ = self._parse(self._read(BLOCK_HEADER_BYTES, offset), offset)
        if info.type is BlockType.FOOTER:
            return info, self._read(info.table_bytes, info.table_offset)
        return block(self, offset, known)

    patch(EntryLogScanner, "block", unchecked)
