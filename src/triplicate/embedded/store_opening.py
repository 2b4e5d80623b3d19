"""Opening a key-value store in the process of an application."""

from __future__ import annotations

import os
from dataclasses import replace
from types import TracebackType
from typing import Any

from triplicate.embedded.core.targets import Target, parse_target
from triplicate.embedded.database import DEFAULT_NAME, START_LIMIT_S
from triplicate.embedded.embedded_node import EmbeddedNode, NodeOptions
from triplicate.embedded.embedded_store import EmbeddedStore
from triplicate.errors import ArgumentError
from triplicate.runtime import Trace, real_host, shielded


class key_value:
    """``async with triplicate.key_value("app.triplicate") as store:`` opens a key-value store in this process, and stops it at the end.

    Args:
        target: as for `triplicate.database`: a folder, the metadata of a cluster, or ``memory:``. Or the node of a database or a store that
            this process has open, ``db.node``, which goes on at the end.
        name: of the store in its cluster.
        port: clients of Redis may connect to this port, 0 for a free one. None: as ``resp=RespSettings(…)`` says, by default nobody may.
        create: make the store if there is none of the name. None: in a folder of its own and in memory.
        limit_s: limit of the wait for a store that can be used, in seconds.
        trace: called with the kind and the facts of each event; None to drop them.
        options: `settings`, `stores`, `resp`, `client`, `security`, `metadata`, `logs` and `metrics`, see `NodeOptions`.

    Raises (on entering):
        ArgumentError: the target has no known form. EnvironmentFault: another process uses the folder, the store cannot be used in time, or
        the package rocksdict is missing. ConfigError: a protection is missing that is required, or settings contradict each other.
        NoSuchStore: there is no such store.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | EmbeddedNode,
        name: str = DEFAULT_NAME,
        *,
        port: int | None = None,
        create: bool | None = None,
        limit_s: float = START_LIMIT_S,
        trace: Trace | None = None,
        **options: Any,
    ) -> None:
        if isinstance(target, EmbeddedNode) and (port is not None or trace is not None or options):
            raise ArgumentError("the node is open: give port, trace and options to what opens it")
        self._target: Target | EmbeddedNode = target if isinstance(target, EmbeddedNode) else parse_target(os.fspath(target), os.getcwd())
        self._name = name
        self._create = create
        self._limit_s = limit_s
        self._trace = trace
        self._options = _with_port(NodeOptions(**options), port)
        self._opened: EmbeddedStore | None = None

    async def __aenter__(self) -> EmbeddedStore:
        if isinstance(self._target, EmbeddedNode):
            self._opened = await self._open(self._target, shares_node=True)
            return self._opened
        node = await EmbeddedNode.open(real_host("embedded", trace=self._trace), self._target, self._options)
        try:
            self._opened = await self._open(node, shares_node=False)
        except BaseException:
            await shielded(node.aclose())
            raise
        return self._opened

    async def _open(self, node: EmbeddedNode, *, shares_node: bool) -> EmbeddedStore:
        create = node.is_local if self._create is None else self._create
        return await EmbeddedStore.open(node, self._name, create=create, limit_s=self._limit_s, shares_node=shares_node)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        opened, self._opened = self._opened, None
        assert opened is not None, "key_value is left without having been entered"
        await shielded(opened.aclose())


def _with_port(options: NodeOptions, port: int | None) -> NodeOptions:
    return options if port is None else replace(options, resp=replace(options.resp, serve=True, port=port))
