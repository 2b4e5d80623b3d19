"""Rewrite ``tests/golden/captured/repair-RELEASE.json``: nodes of Apache's auditor and replication worker in ZooKeeper.

Usage: ``python -m tests.interop.capture_repair``, once ``scripts/interop.py 4.18.0 4.14.7`` has installed both.

Two bookies share a ledger, one is killed, and no bookie can replace it. The auditor marks the ledger, the worker locks it, finds no
bookie, and keeps the lock for a while.
"""

from __future__ import annotations

import datetime
import json
import sys
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.interop.driver import NEWEST, OLDEST, ROOT
from tests.interop.stand import Stand
from tests.interop.tools import AutoRecovery
from tests.waiting import wait_until

TARGET = ROOT / "tests" / "golden" / "captured"
SETTINGS: dict[str, object] = {
    "auditorPeriodicCheckInterval": 3600,
    "auditorPeriodicPlacementPolicyCheckInterval": 3600,
    "auditorReplicasCheckInterval": 3600,
    "lostBookieRecoveryDelay": 0,
    "openLedgerRereplicationGracePeriod": 1000,
}


def nodes_below(client: Any, path: str, top: str) -> dict[str, dict[str, object]]:
    """Path below `top` → data of a node and its descendants, and whether they are ephemeral."""
    try:
        data, stat = client.get(path)
        names = client.get_children(path)
    except NoNodeError:
        return {}
    found: dict[str, dict[str, object]] = {path.removeprefix(top): {"data": data.hex(), "ephemeral": stat.ephemeralOwner != 0}}
    for name in sorted(names):
        found |= nodes_below(client, f"{path}/{name}", top)
    return found


def capture(stand: Stand, release: str) -> None:
    cluster = stand.new_cluster(f"repair-{release}", 2, 0)
    writer = stand.run(stand.our_client(cluster, "v2").create(ensemble_size=2, write_quorum=2, ack_quorum=2))
    stand.run(writer.append(b"marked"))
    stand.run(writer.close())
    top = f"/{cluster.name}/ledgers/underreplication"
    client = KazooClient(hosts=stand.zookeeper.address)
    client.start(timeout=10)
    try:
        with AutoRecovery(cluster.uri, stand.new_folder(), release=release, **SETTINGS) as apache:
            checks = ("checkallledgersctime", "placementpolicycheckctime", "replicascheckctime")
            wait_until(lambda: all(client.exists(f"{top}/{check}") for check in checks), 60, "every check has run")
            cluster.bookies[1].kill()
            wait_until(lambda: bool(client.exists(f"{top}/locks/urL{writer.ledger_id:010d}")), 60, "the ledger is marked and locked")
            nodes = nodes_below(client, top, top)
    finally:
        client.stop()
        client.close()
    content = {
        "provenance": {
            "what": "Nodes below underreplication: by Apache's auditor and replication worker on bookies of ours, one of them killed",
            "autorecovery": f"Apache BookKeeper {release}",
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "made_by": "python -m tests.interop.capture_repair",
        },
        "ledger_id": writer.ledger_id,
        "missing": cluster.bookies[1].bookie_id,
        "auditor": apache.bookie_id,
        "nodes": nodes,
    }
    TARGET.mkdir(parents=True, exist_ok=True)
    (TARGET / f"repair-{release}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    stand = Stand()
    try:
        for release in sys.argv[1:] or (NEWEST, OLDEST):
            capture(stand, release)
    finally:
        stand.close()


if __name__ == "__main__":
    main()
