"""The frames that clients send, recorded by a proxy before the bookie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.interop.bookies import ApacheBookie, Cluster, initialise_with_ours
from tests.interop.driver import payload
from tests.interop.proxy import CLIENT, RecordingProxy, before
from tests.interop.sides import FENCED, NOT_SUPPORTED, Refused, Side, side
from tests.interop.stand import OURS, Stand
from triplicate import DigestType
from triplicate.wire import AddRequest, BatchReadRequest, BatchReadResponse, ReadRequest, Request, Response, v2, v3

PASSWORD = b"travel"


@pytest.fixture(scope="module", params=["ours", "apache"])
def watched(stand: Stand, request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, RecordingProxy]]:
    """A cluster of one bookie of either kind behind a proxy."""
    kind = request.param
    cluster = stand.new_cluster(f"watched-{kind}", *((1, 0) if kind == "ours" else (0, 1)))
    proxy = before(stand, cluster, cluster.bookies[0])
    yield cluster, proxy
    proxy.close()
    cluster.stop()


def written(client: Side, count: int) -> int:
    ledger = client.create(ensemble_size=1, write_quorum=1, ack_quorum=1, digest_type=DigestType.CRC32C, password=PASSWORD)
    ledger.append_many(count, first=0, size=100, seed=3)
    ledger.close()
    return ledger.ledger_id


def requests_of(proxy: RecordingProxy, step: str, wire: str) -> list[Request | None]:
    frames = [frame.frame[4:] for frame in proxy.of_step(step) if frame.sender == CLIENT and frame.wire == wire]
    return [v2.decode_request(body) if wire == "v2" else v3.decode_request(body).request for body in frames]


def without_ledger(request: Request | None) -> Request:
    """The request with ledger id 0."""
    if isinstance(request, AddRequest):
        return replace(request, ledger_id=0, body=bytes(8) + request.body[8:])
    assert isinstance(request, ReadRequest)
    return replace(request, ledger_id=0)


def answers_of(proxy: RecordingProxy, step: str) -> list[Response]:
    return [v2.decode_response(frame.frame[4:]) for frame in proxy.of_step(step) if frame.sender != CLIENT and frame.wire == "v2"]


@pytest.mark.parametrize("client", ["ours", "java"])
def test_a_batch_is_sent_as_one_request(stand: Stand, watched: tuple[Cluster, RecordingProxy], client: str, java_release: str) -> None:
    cluster, proxy = watched
    reader = side(stand, OURS if client == "ours" else f"java-{java_release}", cluster, "v2")
    ledger_id = written(reader, 9)
    reading = reader.open(ledger_id, digest_type=DigestType.CRC32C, password=PASSWORD)
    proxy.step = f"batch {client} {java_release}"
    if not reader.batch_reads:
        with pytest.raises(Refused, match=NOT_SUPPORTED):
            reading.read_batch(0, 5, 1 << 20)
        assert requests_of(proxy, proxy.step, "v2") == []
        return
    entries = reading.read_batch(2, 5, 1 << 20)
    assert [entry.payload for entry in entries] == [payload(3, entry_id, 100) for entry_id in range(2, 7)]
    [request] = requests_of(proxy, proxy.step, "v2")
    assert isinstance(request, BatchReadRequest)
    assert (request.ledger_id, request.start_entry_id, request.max_count, request.fence) == (ledger_id, 2, 5, False)
    [answer] = answers_of(proxy, proxy.step)
    assert isinstance(answer, BatchReadResponse)
    assert len(answer.bodies) == 5
    reading.close()


def test_over_version_3_we_read_a_batch_one_by_one(stand: Stand, watched: tuple[Cluster, RecordingProxy]) -> None:
    cluster, proxy = watched
    reader = side(stand, OURS, cluster, "v3")
    reading = reader.open(written(reader, 9), digest_type=DigestType.CRC32C, password=PASSWORD)
    proxy.step = "batch over version 3"
    entries = reading.read_batch(2, 5, 1 << 20)
    assert [entry.payload for entry in entries] == [payload(3, entry_id, 100) for entry_id in range(2, 2 + len(entries))]
    requests = requests_of(proxy, proxy.step, "v3")
    assert [(type(request), getattr(request, "entry_id", None)) for request in requests] == [
        (ReadRequest, entry_id) for entry_id in range(2, 2 + len(entries))
    ]
    assert answers_of(proxy, proxy.step) == []
    reading.close()


@pytest.mark.parametrize("wire", ["v2", "v3"])
def test_both_clients_send_the_same_to_write_and_read(
    stand: Stand, watched: tuple[Cluster, RecordingProxy], wire: str, java_release: str
) -> None:
    """Both send the same requests in the same order, except for the ledger id and version 3's transaction ids."""
    cluster, proxy = watched
    seen = []
    for name in (OURS, f"java-{java_release}"):
        client = side(stand, name, cluster, wire)
        step = proxy.step = f"writing {wire} {name} beside {java_release}"
        ledger = client.create(ensemble_size=1, write_quorum=1, ack_quorum=1, digest_type=DigestType.DUMMY, password=PASSWORD)
        for index in range(3):
            ledger.append(payload(1, index, 50))
        ledger.close()
        reading = client.open(ledger.ledger_id, digest_type=DigestType.DUMMY, password=PASSWORD)
        for index in range(3):
            # Our client reads several entries as a batch where it can.
            reading.read(index, index)
        reading.close()
        seen.append([without_ledger(request) for request in requests_of(proxy, step, wire)])
    assert len(seen[0]) == 6
    assert seen[0] == seen[1]


@pytest.mark.parametrize("wire", ["v2", "v3"])
def test_our_client_works_on_a_bookie_of_each_release(stand: Stand, wire: str, java_release: str) -> None:
    """A bookie without batch reads closes the connection on such a request; our client then reads one by one."""
    name = f"bookie-{java_release}-{wire}"
    stand.make_root(name)
    uri = stand.uri(name)
    initialise_with_ours(uri)
    bookie = ApacheBookie(name, uri, stand.new_folder(), release=java_release, named=True)
    cluster = Cluster(name, stand.servers(name), [bookie], uri)
    try:
        cluster.start()
        stand.wait_writable(cluster)
        client = side(stand, OURS, cluster, wire)
        ledger = client.create(ensemble_size=1, write_quorum=1, ack_quorum=1, digest_type=DigestType.CRC32C, password=PASSWORD)
        ledger.append_many(20, first=0, size=100, seed=3)
        ledger.force()
        # The writer continues; recovery fences it.
        reading = client.open(ledger.ledger_id, digest_type=DigestType.CRC32C, password=PASSWORD, recovery=True)
        assert (reading.is_closed(), reading.last_add_confirmed()) == (True, 19)
        expected = [payload(3, entry_id, 100) for entry_id in range(20)]
        assert [entry.payload for entry in reading.read(0, 19)] == expected
        batch = reading.read_batch(4, 10, 1 << 20)
        assert [entry.payload for entry in batch] == expected[4 : 4 + len(batch)]
        assert batch
        reading.close()
        with pytest.raises(Refused, match=FENCED):
            ledger.append(b"too late")
    finally:
        cluster.stop()
