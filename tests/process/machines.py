"""Bookies of `triplicate up` on machines of their own: each has another loopback address. Racks are those of the cluster's table."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.process.at_once import at_once
from tests.process.copies import registered
from tests.process.running import Up
from tests.waiting import LIMIT_S, wait_until
from triplicate.cli.supervision.cluster_folder import open_folder


@contextmanager
def machines(folder: Path, *, bookies: int = 4, heals: bool = False, more: str = "") -> Iterator[Up]:
    """A cluster whose bookies are on the addresses 127.0.0.1, 127.0.0.2 and so on.

    Args:
        heals: as for `Up`; misplaced copies are then moved, too.
        more: further lines of each bookie's settings.
    """
    cluster = open_folder(folder, bookies=bookies, nodes=0)
    cluster.write_configs()
    for number, member in enumerate(cluster.members, 1):
        configuration = cluster.config_of(member)
        text = configuration.read_text().replace('"127.0.0.1"', f'"127.0.0.{number}"')
        configuration.write_text(text.replace("in_bookie = true", "in_bookie = true\nmove_misplaced = true") + more)
    with Up(folder, "--nodes", "0", heals=heals) as up:
        wait_until(lambda: len(asyncio.run(registered(up.uri))) == bookies, LIMIT_S, "all bookies are registered")
        yield up
        assert up.end(signal.SIGTERM) == 0


def set_racks(uri: str, racks: Mapping[str, str]) -> None:
    """State the rack of each bookie in the cluster's table."""
    for name, rack in racks.items():
        at_once("cluster", "racks", "set", name, rack, uri=uri)
