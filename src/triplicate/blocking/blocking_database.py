"""Embedded databases without `await`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from triplicate.blocking.background_loop import BackgroundLoop, OpenOnLoop
from triplicate.blocking.embedded_facade import BlockingTransaction, DatabaseMethods
from triplicate.embedded import DEFAULT_NAME, EmbeddedNode
from triplicate.embedded import database as database_async


class OpenDatabase(DatabaseMethods):
    """`EmbeddedDatabase` without `await`. Several threads may use it at the same time."""

    @property
    def node(self) -> EmbeddedNode:
        """The node, whose coroutines run with ``loop.call``. See `EmbeddedDatabase.node`."""
        return self._database.node

    @contextmanager
    def transaction(self, *, immediate: bool = False) -> Iterator[BlockingTransaction]:
        """``with database.transaction() as transaction:`` See `EmbeddedDatabase.transaction`."""
        opened = self._database.transaction(immediate=immediate)
        transaction = BlockingTransaction(self.loop, self.loop.call(opened.__aenter__()))
        try:
            yield transaction
        except BaseException as error:
            if not self.loop.call(opened.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self.loop.call(opened.__aexit__(None, None, None))


class BlockingDatabase(OpenOnLoop, OpenDatabase):
    """An embedded database and the thread of its event loop. Create it with `database`."""

    def __init__(self, target: str | os.PathLike[str], name: str = DEFAULT_NAME, **options: Any) -> None:
        loop = BackgroundLoop()
        super().__init__(loop, self._open(loop, partial(database_async, target, name, **options)))


def database(target: str | os.PathLike[str], name: str = DEFAULT_NAME, **options: Any) -> BlockingDatabase:
    """``with triplicate.blocking.database("app.triplicate") as db:`` Arguments and errors as for `triplicate.database`."""
    return BlockingDatabase(target, name, **options)
