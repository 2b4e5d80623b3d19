"""A bookie under random requests, flushes and power losses, against a model of what was acknowledged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.bookie.bookie_rig import RawClient, Rig, V3Client, run_rig
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import AddRequest, AddResponse, Status

LEDGERS = (1, 2, 3)
CODECS = {ledger_id: EntryCodec(ledger_id, DigestType.CRC32C, b"") for ledger_id in LEDGERS}


@dataclass
class Model:
    """The bookie's obligations: each acknowledged entry with any payload that may be its newest, and every fence."""

    known: set[int] = field(default_factory=set)
    """Ledgers that must exist."""
    possible: set[int] = field(default_factory=set)
    """Ledgers that may exist."""
    fenced: set[int] = field(default_factory=set)
    acknowledged: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """The last acknowledged payload."""
    sent: dict[tuple[int, int], list[bytes]] = field(default_factory=dict)
    """Every payload ever sent, in order."""
    deferred: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """The last payload acknowledged before its sync; a force makes it an obligation, a crash drops it."""
    explicit: dict[int, bytes] = field(default_factory=dict)
    """Explicit last-add-confirmed records acknowledged last."""


operations = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(LEDGERS), st.integers(0, 12), st.booleans(), st.integers(0, 3000)),
    st.tuples(st.just("burst"), st.sampled_from(LEDGERS), st.integers(0, 40), st.booleans(), st.integers(0, 200)),
    st.tuples(st.just("deferred"), st.sampled_from(LEDGERS), st.integers(0, 40), st.booleans(), st.integers(0, 200)),
    st.tuples(st.just("force"), st.just(1), st.just(0), st.just(False), st.just(0)),
    st.tuples(st.just("explicit"), st.sampled_from(LEDGERS), st.integers(0, 60), st.just(False), st.just(0)),
    st.tuples(st.just("fence"), st.sampled_from(LEDGERS), st.just(0), st.just(False), st.just(0)),
    st.tuples(st.just("flush"), st.just(1), st.just(0), st.just(False), st.just(0)),
    st.tuples(st.just("crash"), st.just(1), st.just(0), st.booleans(), st.integers(0, 60)),
    st.tuples(st.just("rebuild"), st.just(1), st.just(0), st.just(False), st.just(0)),
)


def payload_of(number: int, size: int) -> bytes:
    return b"%06d" % number + bytes(size)


async def add(
    client: RawClient, model: Model, ledger_id: int, entry_ids: list[int], recovery: bool, size: int, number: int, *, deferred: bool = False
) -> None:
    """Send adds together; record the acknowledged ones."""
    payload = payload_of(number, size)
    codec = CODECS[ledger_id]
    requests = [
        AddRequest(
            ledger_id, entry_id, codec.master_key, codec.encode(entry_id, -1, len(payload), payload), recovery, deferred_sync=deferred
        )
        for entry_id in entry_ids
    ]
    allowed = recovery or ledger_id not in model.fenced
    model.possible.add(ledger_id)
    if allowed:
        for entry_id in entry_ids:
            model.sent.setdefault((ledger_id, entry_id), []).append(payload)
    client.send(*requests)
    for _ in requests:
        answer = await client.answer()
        assert isinstance(answer, AddResponse)
        if not allowed:
            assert answer.status is Status.FENCED
            continue
        assert answer.status in (Status.OK, Status.TOO_MANY_REQUESTS)
        if answer.status is Status.OK and deferred:
            model.deferred[ledger_id, answer.entry_id] = payload
        elif answer.status is Status.OK:
            model.known.add(ledger_id)
            model.acknowledged[ledger_id, answer.entry_id] = payload
            model.deferred.pop((ledger_id, answer.entry_id), None)


async def force(client: V3Client, model: Model) -> None:
    """All ledgers share one journal, so a force of one covers all."""
    assert await client.force(1) is Status.OK
    for (ledger_id, entry_id), payload in model.deferred.items():
        model.known.add(ledger_id)
        model.acknowledged[ledger_id, entry_id] = payload
    model.deferred.clear()


async def check_lists(client: V3Client, model: Model) -> None:
    """Answers that only version 3 has agree with single reads."""
    for ledger_id in LEDGERS:
        answers = [await client.read(ledger_id, entry_id) for entry_id in range(42)]
        if ledger_id not in model.known | model.fenced:
            continue
        there = [entry_id for entry_id, answer in enumerate(answers) if answer.status is Status.OK]
        assert [entry_id for run in await client.entries(ledger_id) for entry_id in run] == there
        found = await client.read_lac(ledger_id)
        assert found.status is (Status.OK if there or found.lac_body is not None else Status.NO_ENTRY)
        explicit = model.explicit.get(ledger_id)
        if explicit is not None:
            assert found.lac_body == explicit
        if there:
            assert found.last_entry_body == answers[there[-1]].body


async def check(client: RawClient, model: Model) -> None:
    for ledger_id in LEDGERS:
        greatest = -1
        for entry_id in range(42):
            answer = await client.read(ledger_id, entry_id)
            owed = model.acknowledged.get((ledger_id, entry_id))
            if answer.status is Status.OK:
                assert answer.body is not None
                payload = CODECS[ledger_id].decode(answer.body, entry_id).payload
                sent = model.sent[ledger_id, entry_id]
                # No payload older than the last acknowledged one.
                assert payload in sent[sent.index(owed) if owed is not None else 0 :]
                greatest = entry_id
            else:
                assert owed is None, (ledger_id, entry_id, answer.status)
                assert answer.status is (Status.NO_ENTRY if ledger_id in model.known | model.fenced else answer.status)
        last = await client.read(ledger_id, -1)
        if greatest >= 0:
            assert last.body is not None
            assert int.from_bytes(last.body[8:16], "big") == greatest
            batch = await client.batch(ledger_id, greatest)
            assert batch.bodies == (last.body,)
        else:
            assert last.status in (Status.NO_ENTRY, Status.NO_LEDGER)


async def play(rig: Rig, steps: list[tuple[tuple[Any, ...], bool]]) -> None:
    model = Model()
    clients = await rig.connect(), await rig.connect_v3()
    for number, ((kind, ledger_id, entry_id, flag, size), over_v3) in enumerate(steps):
        client = clients[over_v3]
        if kind == "add":
            await add(client, model, ledger_id, [entry_id], flag, size, number)
        elif kind == "burst":
            await add(client, model, ledger_id, list(range(entry_id + 1)), flag, size, number)
        elif kind == "deferred":
            await add(clients[1], model, ledger_id, list(range(entry_id + 1)), flag, size, number, deferred=True)
        elif kind == "force":
            await force(clients[1], model)
        elif kind == "explicit":
            assert await clients[1].write_lac(CODECS[ledger_id], entry_id) is Status.OK
            model.known.add(ledger_id)
            # A record with a smaller value than the one before it has no effect.
            codec = CODECS[ledger_id]
            before = codec.decode_lac(model.explicit[ledger_id]) if ledger_id in model.explicit else -1
            model.explicit[ledger_id] = codec.encode_lac(max(before, entry_id))
        elif kind == "fence":
            answer = await client.fence(CODECS[ledger_id])
            assert answer.status in (Status.OK, Status.NO_ENTRY)
            model.fenced.add(ledger_id)
        elif kind == "flush":
            if rig.bookie.storage.cache.active:
                await rig.flushed()
        else:
            if kind == "crash":
                await asyncio.sleep(size / 50)
                await rig.restart(keep_unsynced=flag)
            else:
                rig.node.crash()
                for name in ("index.db", "index.db-commits"):
                    rig.disk.names.live.pop(f"/data/ledgers/current/{name}", None)
                    rig.disk.names.durable.pop(f"/data/ledgers/current/{name}", None)
                await rig.node.start()
            model.deferred.clear()
            clients = await rig.connect(), await rig.connect_v3()
            await check(clients[0], model)
            await check_lists(clients[1], model)
    await check(clients[0], model)
    await check_lists(clients[1], model)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), steps=st.lists(st.tuples(operations, st.booleans()), min_size=3, max_size=14))
def test_acknowledged_entries_are_read_and_fenced_ledgers_stay_fenced(seed: int, steps: list[tuple[tuple[Any, ...], bool]]) -> None:
    run_rig(lambda rig: play(rig, steps), seed)
