"""Entry logs that a deleted ledger leaves mostly empty, and the check of the two ledgers that stay."""

from __future__ import annotations

from tests.unit.bookie.bookie_rig import RawClient, Rig
from tests.unit.bookie.crash_rig import LEDGERS
from triplicate.ledger import EntryCodec
from triplicate.wire import Status

KEPT, FENCED, GONE = 1, 2, 3
ROUNDS = 6


def payload(ledger_id: int, entry_id: int) -> bytes:
    return b"%d-%d " % (ledger_id, entry_id) * (200 if ledger_id == KEPT else 2000)


async def fill(rig: Rig) -> dict[int, EntryCodec]:
    """Logs full of a ledger that is deleted then, with a little of two others among it; one of these is fenced early."""
    codecs = {ledger_id: await rig.create_ledger(ledger_id) for ledger_id in (KEPT, FENCED, GONE)}
    client = await rig.connect()
    assert await client.add(codecs[FENCED], 0, payload(FENCED, 0)) is Status.OK
    await client.fence(codecs[FENCED])
    for number in range(ROUNDS):
        for entry_id in range(number * 8, number * 8 + 8):
            assert await client.add(codecs[GONE], entry_id, payload(GONE, entry_id)) is Status.OK
            assert await client.add(codecs[KEPT], entry_id, payload(KEPT, entry_id)) is Status.OK
        await rig.bookie.storage.flush()
    await rig.delete_ledger(GONE)
    assert await rig.bookie.collect_garbage() == 1
    return codecs


async def check(rig: Rig, codecs: dict[int, EntryCodec], *, gone: bool = True) -> None:
    """Everything is there; the deleted ledger is not, unless replay or a rebuild has just brought it back, for the next collection."""
    client: RawClient = await rig.connect()
    for ledger_id, count in ((KEPT, ROUNDS * 8), (FENCED, 1)):
        for entry_id in range(count):
            answer = await client.read(ledger_id, entry_id)
            assert answer.status is Status.OK, (ledger_id, entry_id, answer)
            assert answer.body is not None
            assert codecs[ledger_id].decode(answer.body, entry_id).payload == payload(ledger_id, entry_id)
    assert await client.add(codecs[FENCED], 1) is Status.FENCED
    assert not gone or (await client.read(GONE, 0)).status is Status.NO_LEDGER


def logs(rig: Rig) -> list[str]:
    return [name for name in rig.files(LEDGERS) if name.endswith(".entries")]
