"""The embedded nodes of this process, which its connections share.

A folder belongs to one process, so all connections of the process to it use one node. The last one that is closed stops it.
"""

from __future__ import annotations

import atexit
import os
import threading
from dataclasses import dataclass, field
from typing import Any

from triplicate.blocking import BackgroundLoop
from triplicate.embedded import DEFAULT_NAME, EmbeddedDatabase, database


@dataclass
class SharedDatabase:
    """A database that is open in this process, and the event loop that runs it."""

    key: tuple[str, str]
    loop: BackgroundLoop
    opening: database | None
    """Stops the node; None where somebody else does, as for the fixtures of tests."""
    opened: EmbeddedDatabase
    users: int = field(default=1)
    """The number of open connections."""


_guard = threading.Lock()
_open: dict[tuple[str, str], SharedDatabase] = {}
_inherited: list[SharedDatabase] = []
"""Those of the parent, in a child."""


def acquire(target: str | os.PathLike[str], name: str = DEFAULT_NAME, **options: Any) -> SharedDatabase:
    """The database at a target, opened unless a connection of this process has it open. `release` it once.

    Raises:
        TriplicateError: it cannot be opened, see `triplicate.database`.
    """
    text = os.fspath(target)
    is_memory = text in ("memory:", ":memory:")
    key = (text if is_memory or "://" in text else os.path.realpath(text), name)
    with _guard:
        known = _open.get(key)
        if known is not None and not is_memory:
            known.users += 1
            return known
        loop = BackgroundLoop("triplicate-database")
        try:
            opening = database(key[0], name, **options)
            shared = SharedDatabase(key, loop, opening, loop.call(opening.__aenter__()))
        except BaseException:
            loop.close()
            raise
        # Each database in memory is its connection's alone, as those of SQLite are.
        _open[(f"{text} {id(shared)}", name) if is_memory else key] = shared
        return shared


def release(shared: SharedDatabase) -> None:
    """A connection of the database is closed."""
    with _guard:
        shared.users -= 1
        if shared.users == 0:
            _close(shared)


def _close(shared: SharedDatabase) -> None:
    keys = [key for key, one in _open.items() if one is shared]
    if not keys or shared.opening is None:
        return  # It was closed before, or its opener closes it.
    for key in keys:
        del _open[key]
    try:
        shared.loop.call(shared.opening.__aexit__(None, None, None))
    finally:
        shared.loop.close()


def _forget_after_fork() -> None:
    """A child has neither the threads of its parent nor the locks: the parent's databases are not its own."""
    global _guard
    _guard = threading.Lock()
    # Kept, since closing SQLite's files here would concern the parent.
    _inherited.extend(_open.values())
    _open.clear()


@atexit.register
def _close_all() -> None:
    """A program that ends without closing its connections ends its nodes in order."""
    with _guard:
        for shared in list(_open.values()):
            _close(shared)


os.register_at_fork(after_in_child=_forget_after_fork)
