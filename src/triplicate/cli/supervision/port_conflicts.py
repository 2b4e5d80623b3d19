"""Why a process of a local cluster cannot listen on its ports."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import NamedTuple

from triplicate.cli.process.port_holders import ListeningSocket, holder_of
from triplicate.cli.process.serving import place_of
from triplicate.cli.supervision.cluster_folder import HOST, ZOOKEEPER, ClusterFolder, ClusterMember


class ConfiguredPort(NamedTuple):
    """A port that a process of a local cluster listens on; `key` is its setting."""

    address: str
    port: int
    key: str


def port_conflict(folder: ClusterFolder, member: ClusterMember, listening: Sequence[ListeningSocket] | None = None) -> str | None:
    """The reason why a process of a local cluster cannot listen, in one line with the remedy; None if its ports are free."""
    config = folder.config_of(member)
    for address, port, key in _places(folder, member):
        holder = holder_of(address, port, listening) if port else None
        if holder is None:
            continue
        if holder.runs(config):
            return (
                f"{member.name} did not start: it runs already as process {holder.pid}, which this `triplicate up` has not started; "
                f"end it (kill {holder.pid}), then try again"
            )
        return (
            f"{member.name} did not start: {place_of(address, port)} is held by {holder}; end that one, or choose another {key} in {config}"
        )
    return None


def _places(folder: ClusterFolder, member: ClusterMember) -> list[ConfiguredPort]:
    """The ports in a process's settings file."""
    if member.kind == ZOOKEEPER:
        return [ConfiguredPort(HOST, member.port, "clientPort")]
    tables = tomllib.loads(folder.config_of(member).read_text(encoding="utf-8"))
    own, process = tables.get(member.kind, {}), tables.get("process", {})
    return [
        ConfiguredPort(str(own.get("host", HOST)), int(own.get("port", 0)), f"{member.kind}.port"),
        ConfiguredPort(str(process.get("metrics_host", HOST)), int(process.get("metrics_port", 0)), "process.metrics_port"),
    ]
