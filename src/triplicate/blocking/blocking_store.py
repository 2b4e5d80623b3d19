"""Embedded key-value stores without `await`."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Self

from triplicate.blocking.background_loop import BackgroundLoop
from triplicate.blocking.blocking_database import OpenDatabase
from triplicate.blocking.store_facade import StoreMethods
from triplicate.embedded import DEFAULT_NAME
from triplicate.embedded import key_value as key_value_async


class BlockingStore(StoreMethods):
    """An embedded key-value store, with the thread of its event loop unless it shares that of a database. Create it with `key_value`.

    Several threads may use it at the same time.
    """

    def __init__(self, target: str | os.PathLike[str] | OpenDatabase, name: str = DEFAULT_NAME, **options: Any) -> None:
        self._own_loop = None if isinstance(target, OpenDatabase) else BackgroundLoop()
        try:
            if isinstance(target, OpenDatabase):
                loop, self._opening = target.loop, key_value_async(target.node, name, **options)
            else:
                assert self._own_loop is not None
                loop, self._opening = self._own_loop, key_value_async(target, name, **options)
            super().__init__(loop, loop.call(self._opening.__aenter__()))
        except BaseException:
            if self._own_loop is not None:
                self._own_loop.close()
            raise
        self._closed = False

    def close(self) -> None:
        """Stop the store and end its thread. A database whose node it shares goes on. Idempotent."""
        if not self._closed:
            self._closed = True
            try:
                self.loop.call(self._opening.__aexit__(None, None, None))
            finally:
                if self._own_loop is not None:
                    self._own_loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def key_value(target: str | os.PathLike[str] | OpenDatabase, name: str = DEFAULT_NAME, **options: Any) -> BlockingStore:
    """``with triplicate.blocking.key_value("app.triplicate") as store:`` Arguments and errors as for `triplicate.key_value`.

    Args:
        target: also a database that this process has open, whose node the store shares. Close the store first.
    """
    return BlockingStore(target, name, **options)
