"""A cluster that moves from a file to ZooKeeper: made by `triplicate up`, copied, and its bookies restarted there."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.process.running import Member, Up, run_json
from triplicate import blocking
from triplicate.ledger import DigestType

BOOKIES = 3
PASSWORD = b"moved"


@dataclass(frozen=True)
class MovedCluster:
    """Contents of the cluster before the move."""

    folder: Path
    uri: str
    """Its metadata address before the move."""
    instance_id: str
    closed: dict[int, list[bytes]]
    """Payloads by ledger; every ledger's password is `PASSWORD`."""
    open: dict[int, list[bytes]]
    """Likewise, of ledgers whose writer never closed them."""

    @contextlib.contextmanager
    def bookies_on(self, uri: str) -> Iterator[None]:
        """Write another metadata address into the bookies' configuration, as an operator would, and run them."""
        with contextlib.ExitStack() as stack:
            for number in range(1, BOOKIES + 1):
                configuration = self.folder / f"bookie-{number}" / "bookie.toml"
                text = configuration.read_text()
                assert self.uri in text
                configuration.write_text(text.replace(self.uri, uri))
                stack.enter_context(Member(self.folder, f"bookie-{number}"))
            yield


def make_cluster(folder: Path) -> MovedCluster:
    """A cluster in a file, with ledgers of several kinds, stopped."""
    with Up(folder, "--bookies", str(BOOKIES), "--nodes", "0") as up:
        closed: dict[int, list[bytes]] = {}
        with blocking.connect(up.uri) as client:
            instance_id = client.client.metadata.instance_id
            for digest_type in DigestType:
                payloads = [f"{digest_type.name} {number}".encode() for number in range(20)]
                with client.create(digest_type=digest_type, password=PASSWORD, custom={"kind": b"moved"}) as writer:
                    writer.append_many(payloads)
                closed[writer.ledger_id] = payloads
            left = client.create(password=PASSWORD)
            left.append_many([b"left", b"open"])
            # A deleted ledger's id is not used again either, so existing ledgers alone do not show the next id.
            with client.create(password=PASSWORD) as gone:
                gone.append(b"gone")
            client.delete(gone.ledger_id)
        assert up.end(signal.SIGTERM) == 0, up.errors
    return MovedCluster(folder, up.uri, instance_id, closed, {left.ledger_id: [b"left", b"open"]})


def move(cluster: MovedCluster, target: str) -> Any:
    """Copy the metadata with the command; returns its report."""
    return run_json("cluster", "copy-metadata", cluster.uri, target, uri=target)
