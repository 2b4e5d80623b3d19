"""A damaged dump is loaded, or refused by an error that names its file; nothing else happens, and a refused one leaves nothing."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import apsw
import pytest

from triplicate.errors import ArgumentError
from triplicate.runtime import real_host
from triplicate.sql.backup.pg_dump import load_pg_dump

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "pg_dump"
DUMPS = ("shop_copy.sql", "shop_inserts.sql", "refused_dump.sql")
RUNS = 25
PIECES = (
    b"'",
    b'"',
    b"$$",
    b"(",
    b")",
    b";",
    b",",
    b"\\.",
    b"\\",
    b"/*",
    b"*/",
    b"--",
    b"::",
    b"\0",
    b"\xff",
    b"\n",
    b"NULL",
    b"ARRAY[",
    b"E'",
    b".",
)


def damaged(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 2, 4))):
        start = chance.randrange(len(data))
        end = min(len(data), start + chance.choice((1, 1, 5, 60, 900)))
        match chance.randrange(6):
            case 0:
                data = data[:start] + data[end:]
            case 1:
                data = data[:start] + chance.choice(PIECES) + data[start:]
            case 2:
                data = data[:start] + chance.choice(PIECES) + data[start + 1 :]
            case 3:
                data = data[:end] + data[start:end] + data[end:]
            case 4:
                lines = data.splitlines(keepends=True)
                first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
                lines[first], lines[second] = lines[second], lines[first]
                data = b"".join(lines)
            case _:
                data = data[:end] + data[-80:] if chance.random() < 0.5 else data[:end]
    return data


def definitions_in(path: Path) -> int:
    connection = apsw.Connection(str(path))
    try:
        ((count,),) = connection.execute("select count(*) from sqlite_schema")
        return int(str(count))
    finally:
        connection.close(True)


@pytest.mark.parametrize("name", DUMPS)
def test_a_damaged_dump_is_loaded_or_refused_as_a_whole(tmp_path: Path, name: str) -> None:
    whole, chance = (GOLDEN / name).read_bytes(), random.Random(name)
    text, path = tmp_path / "dump.sql", tmp_path / "loaded.db"
    refusals, left = list[str](), list[int]()

    async def scene() -> None:
        host = real_host("test")
        for _ in range(RUNS):
            text.write_bytes(damaged(whole, chance))
            try:
                load_pg_dump(host, str(text), str(path))
            except ArgumentError as error:
                refusals.append(str(error))
                left.append(definitions_in(path) if path.exists() else 0)

    asyncio.run(scene())
    assert 0 < len(refusals) < RUNS or name == "refused_dump.sql"
    assert [one for one in refusals if not one.startswith(str(text))] == []
    assert set(left) <= {0}
