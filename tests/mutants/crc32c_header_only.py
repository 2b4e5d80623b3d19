"""The CRC32C digest covers an entry's header but not its payload."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.ledger import entry

TESTS = [
    "tests/golden/test_protocol_vectors.py::test_entries_are_encoded_and_decoded",
    "tests/property/test_entry_codec.py::test_every_flipped_bit_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def header_alone(checksum: int, payload: bytes) -> int:
        return checksum

    patch(entry, "_crc32c_extend", header_alone)
