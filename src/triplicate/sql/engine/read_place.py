"""SQL functions that say where a statement is read and how recent that state is."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.storage.sqlite_file import ConnectionSetup, read_state


class ReadPlace:
    """Registers the functions on the connections of one copy.

    Args:
        node: the node's name.
        age_s: how old this copy may be, in seconds; None if that is unknown. Called on any thread.
    """

    def __init__(self, node: str, age_s: Callable[[], float | None]) -> None:
        self._node = node
        self._age_s = age_s

    def setup(self, further: ConnectionSetup | None) -> ConnectionSetup:
        """A setup for new connections: it registers the functions, and then calls the further setup."""

        def register(connection: apsw.Connection) -> None:
            self._register(connection)
            if further is not None:
                further(connection)

        return register

    def _register(self, connection: apsw.Connection) -> None:
        def position(*_: object) -> int:
            return read_state(connection).position

        flags = apsw.SQLITE_DIRECTONLY
        connection.create_scalar_function("triplicate_position", position, 0, flags=flags)
        connection.create_scalar_function("triplicate_read_node", lambda *_: self._node, 0, flags=flags)
        connection.create_scalar_function("triplicate_read_age", lambda *_: self._age_s(), 0, flags=flags)
