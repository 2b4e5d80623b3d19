"""From an address to a metadata store."""

from __future__ import annotations

from triplicate.errors import ConfigError
from triplicate.metadata.memory import MemoryStore, MemoryTree
from triplicate.metadata.renewing import RenewingTree
from triplicate.metadata.sqlite import SqliteTree
from triplicate.metadata.tree import Tree
from triplicate.runtime import Host

KNOWN = "memory: (private to this process), sqlite:///absolute/path/of/a/file"


async def open_tree(uri: str, host: Host) -> Tree:
    """Open the store at `uri`. A session that is lost is followed by another one (`RenewingTree`).

    Args:
        uri: ``memory:`` makes a store of its own; ``sqlite:///absolute/path`` opens or makes a file.

    Raises:
        ConfigError: an address of no known form, or a file that cannot be used.
    """
    if uri == "memory:":
        return MemoryTree(MemoryStore(host.clock))
    if uri.startswith("sqlite:///"):
        path = uri.removeprefix("sqlite://")

        async def open_session() -> Tree:
            return await SqliteTree.open(path, host)

        return RenewingTree(await open_session(), open_session, host)
    raise ConfigError(f"{uri!r} is not the address of a metadata store; known are: {KNOWN}")
