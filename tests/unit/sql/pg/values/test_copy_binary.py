"""COPY's binary format: the header, rows that are cut anywhere, and malformed data."""

from __future__ import annotations

import struct

import pytest

from tests.unit.sql.pg.values.copy_rig import fields, options_of, read
from triplicate.errors import SqlError
from triplicate.sql.pg.values.copy_binary import HEADER, TRAILER, binary_row

ROWS = binary_row([b"1", None]) + binary_row([b"", b"xyz"])


@pytest.mark.parametrize("trailer", [TRAILER, b""])
def test_rows(trailer: bytes) -> None:
    assert fields(HEADER + ROWS + trailer, "BINARY") == [[b"1", None], [b"", b"xyz"]]


def test_an_extension_of_the_header_is_skipped() -> None:
    assert fields(HEADER[:-4] + struct.pack(">i", 3) + b"abc" + ROWS, "BINARY") == [[b"1", None], [b"", b"xyz"]]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PGCOPX\n\xff\r\n\0",
        HEADER[:-1],
        HEADER[:-8] + struct.pack(">Ii", 1 << 16, 0),
        HEADER[:-8] + struct.pack(">Ii", 1 << 20, 0),
        HEADER[:-8] + struct.pack(">Ii", 0, -1),
        HEADER + ROWS[:-1],
        HEADER + binary_row([b"1"]),
        HEADER + struct.pack(">hi", 2, -2),
        HEADER + TRAILER + b"x",
    ],
)
def test_malformed_data_are_refused(data: bytes) -> None:
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        with pytest.raises(SqlError) as refused:
            read(pieces, options_of("BINARY"))
        assert refused.value.sqlstate == "22P04"
