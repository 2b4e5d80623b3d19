"""Opening a database in the process of an application."""

from __future__ import annotations

import os
from dataclasses import replace
from types import TracebackType
from typing import Any

from triplicate.embedded.core.targets import parse_target
from triplicate.embedded.embedded_database import EmbeddedDatabase
from triplicate.embedded.embedded_node import EmbeddedNode, NodeOptions
from triplicate.runtime import Trace, real_host, shielded

DEFAULT_NAME = "main"
START_LIMIT_S = 30.0


class database:
    """``async with triplicate.database("app.triplicate") as db:`` opens a database in this process, and stops it at the end.

    Args:
        target: a folder, which holds a cluster of its own and is made if it is missing, or is of `triplicate up`; the metadata of a
            cluster, ``zk://…`` or ``sqlite:///…``, which this process joins as a node; ``memory:`` for a database that is gone at the end.
        name: of the database in its cluster.
        port: PostgreSQL's clients may connect to this port, 0 for a free one. None: in a cluster of other processes as `settings` says,
            and otherwise nobody may.
        create: make the database if there is none of the name. None: in a folder of its own and in memory.
        settings: of the node; needed to join a cluster by its metadata, where each node has a name and a directory of its own.
        limit_s: limit of the wait for a database that can be used, in seconds.
        trace: called with the kind and the facts of each event; None to drop them.
        options: `client`, `security`, `metadata`, `logs` and `metrics`, see `NodeOptions`.

    Raises (on entering):
        ArgumentError: the target has no known form. EnvironmentFault: another process uses the folder, or the database cannot be used in
        time. ConfigError: a protection is missing that is required, or settings contradict each other. SqlError: 3D000, there is no such
        database.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        name: str = DEFAULT_NAME,
        *,
        port: int | None = None,
        create: bool | None = None,
        limit_s: float = START_LIMIT_S,
        trace: Trace | None = None,
        **options: Any,
    ) -> None:
        self._target = parse_target(os.fspath(target), os.getcwd())
        self._name = name
        self._create = create
        self._limit_s = limit_s
        self._trace = trace
        self._options = replace(NodeOptions(port), **options)
        self._opened: EmbeddedDatabase | None = None

    async def __aenter__(self) -> EmbeddedDatabase:
        host = real_host("embedded", trace=self._trace)
        node = await EmbeddedNode.open(host, self._target, self._options)
        try:
            create = node.is_local if self._create is None else self._create
            self._opened = await EmbeddedDatabase.open(node, self._name, create=create, limit_s=self._limit_s)
        except BaseException:
            await shielded(node.aclose())
            raise
        return self._opened

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        opened, self._opened = self._opened, None
        assert opened is not None, "database is left without having been entered"
        await shielded(opened.aclose())
