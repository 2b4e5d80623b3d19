"""Ledgers that a bookie stores before it crashes, the check of them afterwards, and damage done to its files in between."""

from __future__ import annotations

import pytest

from tests.unit.bookie.bookie_rig import RawClient, Rig
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import Status

JOURNAL = "/data/journal/current"
LEDGERS = "/data/ledgers/current"
LOG = f"{LEDGERS}/0000000000000001.entries"


def codec(ledger_id: int = 5) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


async def add_all(client: RawClient, ledger_id: int, first: int, last: int) -> None:
    """Add entries `first` to `last`; the payload is the entry id in decimal digits."""
    for entry_id in range(first, last + 1):
        assert await client.add(codec(ledger_id), entry_id, b"%d" % entry_id) is Status.OK


async def check_all(client: RawClient, ledger_id: int, last: int) -> None:
    """Read entries 0 to `last` as `add_all` stored them."""
    for entry_id in range(last + 1):
        answer = await client.read(ledger_id, entry_id)
        assert answer.status is Status.OK, (entry_id, answer)
        assert answer.body is not None
        assert codec(ledger_id).decode(answer.body, entry_id).payload == b"%d" % entry_id


def lose_index(rig: Rig) -> None:
    """Remove the files of the index, durably."""
    for name in ("index.db", "index.db-commits"):
        rig.disk.names.live.pop(f"{LEDGERS}/{name}")
        rig.disk.names.durable.pop(f"{LEDGERS}/{name}", None)


def contents(rig: Rig) -> dict[str, bytes]:
    """Path of each file on the disk → its bytes as programs see them."""
    found: dict[str, bytes] = {}
    for path, inode in rig.disk.names.live.items():
        if hasattr(inode, "live"):
            found[path] = bytes(inode.live.data[: inode.live.size])
    return found


def overwrite(rig: Rig, offset: int, data: bytes) -> None:
    """Change bytes of `LOG`, durably."""
    inode = rig.disk.names.live[LOG]
    for image in (inode.live, inode.durable):
        image.data[offset : offset + len(data)] = data


async def refuses_to_start(rig: Rig, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        await rig.node.start()


def lose(rig: Rig, path: str) -> None:
    rig.disk.names.live.pop(path)
    rig.disk.names.durable.pop(path, None)
