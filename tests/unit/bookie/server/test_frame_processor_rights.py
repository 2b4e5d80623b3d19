"""Roles: what a connection may do, over both versions. Fencing reads and recovery adds need the right to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.bookie.bookie_rig import RawClient, V3Client
from tests.unit.bookie.server.door_rig import PASSWORD, DoorRig, codec, run_door, scram
from triplicate.wire import (
    AddRequest,
    BatchReadRequest,
    BookieInfoRequest,
    ForceRequest,
    ListEntriesRequest,
    ReadLacRequest,
    ReadRequest,
    Request,
    Status,
    WriteLacRequest,
    encode_request,
    v3,
)

KEY = codec().master_key


def add(entry_id: int, *, ledger_id: int = 5, recovery: bool = False, deferred: bool = False) -> AddRequest:
    body = codec(ledger_id).encode(entry_id, entry_id - 1, 1, b"x")
    return AddRequest(ledger_id, entry_id, KEY, body, recovery, recovery, deferred)


READS: dict[str, list[Request]] = {
    "v2": [ReadRequest(5, 0), ReadRequest(5, -1), BatchReadRequest(5, 0, 1, 1, 1000)],
    "v3": [
        ReadRequest(5, 0),
        ReadRequest(5, -1),
        ReadRequest(5, -1, previous_lac=-1, timeout_ms=1, piggyback=True),
        ReadLacRequest(5),
        ListEntriesRequest(5),
        BookieInfoRequest(),
    ],
}
WRITES: dict[str, list[Request]] = {
    "v2": [
        add(1),
        add(1, recovery=True),
        ReadRequest(5, 0, fence=True, master_key=KEY),
        BatchReadRequest(5, 0, 1, 1, 1000, fence=True, master_key=KEY),
    ],
    "v3": [
        add(1),
        add(1, recovery=True),
        add(1, deferred=True),
        ReadRequest(5, 0, fence=True, master_key=KEY),
        ReadRequest(5, -1, fence=True, master_key=KEY),
        WriteLacRequest(5, 0, KEY, codec().encode_lac(0)),
        ForceRequest(5),
    ],
}
KINDS: dict[str, type[RawClient]] = {"v2": RawClient, "v3": V3Client}


@pytest.mark.parametrize("version", ["v2", "v3"])
@pytest.mark.parametrize(
    ("user", "may_read", "may_write"),
    [("reader", True, False), ("adder", False, True), ("writer", True, True), ("boss", True, True), ("nobody", False, False)],
)
def test_a_role_allows_its_requests_and_no_others(tmp_path: Path, version: str, user: str, may_read: bool, may_write: bool) -> None:
    async def body(rig: DoorRig) -> None:
        first = await rig.login("writer")
        assert await first.add(codec(), 0) is Status.OK
        client = await rig.connect(KINDS[version])
        assert await scram(client, user, PASSWORD)
        for requests, is_allowed in ((READS, may_read), (WRITES, may_write)):
            for request in requests[version]:
                answer = await client.ask(request)
                assert (answer.status is not Status.UNAUTHORIZED) is is_allowed, request
                if not is_allowed:
                    assert answer == v3.refusal_of(request, Status.UNAUTHORIZED)
        handle = rig.bookie.storage.ledgers.get(5)
        assert handle is not None
        assert handle.fenced is may_write
        assert (handle.last_entry_id > 0) is may_write
        refused = [*([] if may_read else READS[version]), *([] if may_write else WRITES[version])]
        counted = sum(rig.count("triplicate_bookie_refused_requests_total", right=right) for right in ("read", "write"))
        assert counted == len(refused)
        rights = [facts["right"] for facts in rig.traced("bookie.request_refused")]
        assert rights == [right for right, allowed in (("read", may_read), ("write", may_write)) if not allowed]
        assert all(facts["principal"] == user for facts in rig.traced("bookie.request_refused"))

    run_door(tmp_path, body, authentication="sasl")


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_adds_in_bulk_are_refused_one_by_one_and_in_order(tmp_path: Path, version: str) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect(KINDS[version])
        assert await scram(client, "reader", PASSWORD)
        adds = [add(number // 2, ledger_id=5 + number % 2) for number in range(40)]
        client.send(*adds, ReadRequest(7, 0))
        answers = [await client.answer() for _ in range(41)]
        assert answers[:40] == [v3.refusal_of(each, Status.UNAUTHORIZED) for each in adds]
        assert answers[40].status is Status.NO_LEDGER
        assert rig.count("triplicate_bookie_refused_requests_total", right="write") == 40
        assert len(rig.traced("bookie.request_refused")) == 1
        assert rig.bookie.storage.ledgers.get(5) is None

    run_door(tmp_path, body, authentication="sasl")


def test_an_add_of_an_old_version_is_refused_too(tmp_path: Path) -> None:
    async def body(rig: DoorRig) -> None:
        client = await rig.connect(RawClient)
        assert await scram(client, "reader", PASSWORD)
        frame = bytearray(encode_request(add(0)))
        frame[4] = 1
        client.send_bytes(bytes(frame))
        assert (await client.answer()).status is Status.UNAUTHORIZED
        assert rig.bookie.storage.ledgers.get(5) is None

    run_door(tmp_path, body, authentication="sasl")
