"""Rewrite ``tests/golden/captured``: frames between BookKeeper's Java client and bookie, and their nodes in ZooKeeper.

Usage: ``python -m tests.interop.capture`` in the project's folder, once ``scripts/interop.py 4.18.0 4.14.7`` has installed both.

A Java client works on a Java bookie through a proxy that records every frame. Requests that no Java client sends by itself (a wrong master
key, for example) come from our client; each frame names its sender.
"""

from __future__ import annotations

import datetime
import json
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.interop.bookies import ApacheBookie, Cluster, initialise_with_apache
from tests.interop.driver import NEWEST, OLDEST, ROOT, JavaClient, JavaError, JavaLedger
from tests.interop.proxy import CLIENT, RecordingProxy, before
from tests.interop.stand import Stand, java_settings
from triplicate import DigestType
from triplicate.ledger import EntryCodec, derive_master_key
from triplicate.wire import (
    AddRequest,
    AuthRequest,
    FrameBuffer,
    ListEntriesRequest,
    ReadLacRequest,
    ReadRequest,
    Request,
    StartTlsRequest,
    v2,
    v3,
)

TARGET = ROOT / "tests" / "golden" / "captured"
BOOKIE = "captured"
PASSWORD = b"golden"
PAYLOAD = b"a golden entry"
STRANGER = b"another password"
ANSWER_LIMIT_S = 5.0
OURS_PREFIX = "ours: "
"""Steps whose request comes from our client, not from a Java client."""


class Capture:
    """A cluster of one bookie, and the frames that pass its proxy."""

    def __init__(self, stand: Stand, release: str) -> None:
        self.stand = stand
        self.release = release
        self.root = f"capture-{release}"
        uri, folder = stand.uri(self.root), stand.new_folder()
        stand.make_root(self.root)
        initialise_with_apache(uri, folder)
        self.bookie = ApacheBookie(BOOKIE, uri, folder / BOOKIE, named=True)
        self.cluster = Cluster(self.root, stand.servers(self.root), [self.bookie], uri)
        self.cluster.start()
        stand.wait_writable(self.cluster)
        with stand.kazoo() as client:
            self.registration, _ = client.get(f"/{self.root}/ledgers/available/{BOOKIE}")
        self.proxy = before(stand, self.cluster, self.bookie)

    def client(self, wire: str, **settings: object) -> JavaClient:
        return self.stand.driver(self.release).connect(self.cluster.uri, wire=wire, settings=java_settings(**settings))

    def close(self) -> None:
        self.proxy.close()
        self.cluster.stop()

    def step(self, name: str) -> None:
        # Answers in flight belong to the previous step.
        time.sleep(0.3)
        self.proxy.step = name


def create(client: JavaClient, *, digest_type: DigestType = DigestType.CRC32C, **more: Any) -> JavaLedger:
    """A ledger on one bookie."""
    return client.create(ensemble_size=1, write_quorum=1, ack_quorum=1, digest_type=digest_type, **more)


def both_versions(capture: Capture, wire: str) -> None:
    """Operations that both versions carry."""
    client = capture.client(wire)
    for digest_type in DigestType:
        capture.step(f"add {digest_type.name}")
        ledger = create(client, digest_type=digest_type, password=PASSWORD, custom={"owner": b"golden"})
        ledger.append(PAYLOAD)
        ledger.append(b"")
        capture.step(f"read {digest_type.name}")
        ledger.read(0, 1)
        ledger.close()
    capture.step("batch read")
    reading = client.open(ledger.ledger_id, digest_type=DigestType.DUMMY, password=PASSWORD)
    expect_refusal(lambda: reading.read_batch(0, 5, 1000), when=wire == "v3" or not client.driver.batch_reads)
    capture.step("last add confirmed")
    writer = create(client, password=PASSWORD)
    expect_refusal(lambda: client.open(writer.ledger_id, password=PASSWORD).read(0, 0), when=True)
    writer.append(PAYLOAD)
    writer.append(PAYLOAD)
    client.open(writer.ledger_id, password=PASSWORD).read_last_confirmed()
    capture.step("recovery")
    client.open(writer.ledger_id, password=PASSWORD, recovery=True)
    capture.step("fenced")
    expect_refusal(lambda: writer.append(PAYLOAD), when=True)
    client.close()


def version_3_only(capture: Capture) -> None:
    capture.step("explicit last add confirmed")
    client = capture.client("v3", explicitLacInterval=100)
    writer = create(client, password=PASSWORD)
    writer.append(PAYLOAD)
    time.sleep(0.5)
    reading = client.open(writer.ledger_id, password=PASSWORD)
    reading.read_last_confirmed("explicit")
    capture.step("long poll")
    reading.wait_for_entry(0, 1.0)
    reading.wait_for_entry(1, 0.3)
    writer.append(PAYLOAD)
    writer.append(PAYLOAD)
    reading.wait_for_entry(1, 1.0)
    capture.step("deferred sync and force")
    deferred = create(client, password=PASSWORD, deferred_sync=True)
    deferred.append(PAYLOAD)
    deferred.force()
    deferred.close()
    capture.step("bookie info")
    client.bookie_info()
    client.close()


def expect_refusal(action: Callable[[], object], *, when: bool) -> None:
    try:
        action()
    except JavaError:
        assert when, "refused what it should do"
    else:
        assert not when, "did what it should refuse"


def ours_to(capture: Capture, wire: str) -> None:
    """Send requests of ours, so that each answer of the Java bookie is captured."""
    known, unknown = 0, 987_654
    key, wrong = derive_master_key(PASSWORD), derive_master_key(STRANGER)
    entry = EntryCodec(known, DigestType.CRC32, STRANGER).encode(100, -1, len(PAYLOAD), PAYLOAD)
    requests: dict[str, Request] = {
        "add with another key": AddRequest(known, 100, wrong, entry),
        "fencing with another key": ReadRequest(known, 0, fence=True, master_key=wrong),
        "read of no ledger": ReadRequest(unknown, 0),
        "read of no entry": ReadRequest(known, 50),
        "fencing": ReadRequest(known, -1, fence=True, master_key=key),
        "authentication": AuthRequest("sasl", b"\x01\x02"),
    }
    if wire == "v3":
        requests |= {
            "list of entries": ListEntriesRequest(known),
            "list of no ledger": ListEntriesRequest(unknown),
            "last add confirmed of no ledger": ReadLacRequest(unknown),
            "start of TLS": StartTlsRequest(),
        }
    for name, request in requests.items():
        capture.step(OURS_PREFIX + name)
        with socket.create_connection(("127.0.0.1", capture.proxy.port), timeout=ANSWER_LIMIT_S) as connection:
            connection.sendall(v2.encode_request(request) if wire == "v2" else v3.encode_request(request, 77))
            frames = FrameBuffer()
            while not list(frames.bodies(connection.recv(1 << 16))):
                continue


def znodes(capture: Capture) -> dict[str, bytes]:
    """Path below the root → data of BookKeeper's nodes, with ledgers of one, two and no segments beyond the first."""
    client = capture.client("v2")
    capture.step("change of ensemble")
    changed = create(client, password=PASSWORD, custom={"owner": b"golden", "bytes": bytes(range(16))})
    changed.append(PAYLOAD)
    other = ApacheBookie("other", capture.cluster.uri, capture.stand.new_folder(), named=True)
    capture.cluster.bookies.append(other)
    other.start()
    capture.stand.wait_writable(capture.cluster)
    capture.proxy.close()
    changed.append(PAYLOAD)

    def walk(zookeeper: Any) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        pending = [f"/{capture.root}/ledgers"]
        while pending:
            path = pending.pop()
            data, _ = zookeeper.get(path)
            found[path.removeprefix(f"/{capture.root}/ledgers") or "/"] = data
            pending += [f"{path}/{name}" for name in zookeeper.get_children(path)]
        return found

    with capture.stand.kazoo() as zookeeper:
        nodes: dict[str, bytes] = walk(zookeeper)
    nodes[f"/available/{BOOKIE}"] = capture.registration
    return dict(sorted(nodes.items()))


def provenance(what: str, release: str) -> dict[str, str]:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    parts = {"client": f"Apache BookKeeper {release}", "bookie": f"Apache BookKeeper {NEWEST}"}
    return {"what": what, **parts, "date": today, "made_by": "python -m tests.interop.capture"}


def frames_of(proxy: RecordingProxy, wire: str) -> list[dict[str, str]]:
    found = []
    for frame in proxy.frames:
        ours = frame.step.startswith(OURS_PREFIX)
        sender = "Java bookie" if frame.sender != CLIENT else "Triplicate" if ours else "Java client"
        if frame.wire == wire:
            found.append({"step": frame.step.removeprefix(OURS_PREFIX), "sender": sender, "frame": frame.frame.hex()})
    return found


def write(name: str, content: dict[str, Any]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    path = TARGET / name
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(path.relative_to(ROOT))


def capture_release(stand: Stand, release: str) -> None:
    capture = Capture(stand, release)
    try:
        for wire in ("v2", "v3"):
            both_versions(capture, wire)
        version_3_only(capture)
        for wire in ("v2", "v3"):
            ours_to(capture, wire)
        nodes = znodes(capture)
    finally:
        capture.close()
    for wire in ("v2", "v3"):
        text = f"Frames of protocol {wire}, with their length, between client and bookie in the order in which they passed"
        frames = frames_of(capture.proxy, wire)
        write(f"{wire}-{release}.json", {"provenance": provenance(text, release), "password": PASSWORD.hex(), "frames": frames})
    text = "Nodes below the metadata root: made by Apache's shell, Java bookies and a Java client"
    found = {path: data.hex() for path, data in nodes.items()}
    write(f"znodes-{release}.json", {"provenance": provenance(text, release), "nodes": found})


def main() -> int:
    stand = Stand()
    try:
        for release in (NEWEST, OLDEST):
            capture_release(stand, release)
    finally:
        stand.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
