"""Embedded key-value stores without `await`."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from triplicate.blocking.background_loop import BackgroundLoop, OpenOnLoop
from triplicate.blocking.blocking_database import OpenDatabase
from triplicate.blocking.store_facade import StoreMethods
from triplicate.embedded import DEFAULT_NAME
from triplicate.embedded import key_value as key_value_async


class BlockingStore(OpenOnLoop, StoreMethods):
    """An embedded key-value store, with the thread of its event loop unless it shares that of a database. Create it with `key_value`.

    Several threads may use it at the same time.
    """

    def __init__(self, target: str | os.PathLike[str] | OpenDatabase, name: str = DEFAULT_NAME, **options: Any) -> None:
        is_shared = isinstance(target, OpenDatabase)
        loop, place = (target.loop, target.node) if isinstance(target, OpenDatabase) else (BackgroundLoop(), target)
        super().__init__(loop, self._open(loop, partial(key_value_async, place, name, **options), owns_loop=not is_shared))


def key_value(target: str | os.PathLike[str] | OpenDatabase, name: str = DEFAULT_NAME, **options: Any) -> BlockingStore:
    """``with triplicate.blocking.key_value("app.triplicate") as store:`` Arguments and errors as for `triplicate.key_value`.

    Args:
        target: also a database that this process has open, whose node the store shares. Close the store first.
    """
    return BlockingStore(target, name, **options)
