"""A client that gives COPY FROM up with CopyFail has its rows stored."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import SqlError
from triplicate.sql.pg.protocol import copy_in

TESTS = ["tests/unit/sql/pg/protocol/test_copy_commands.py::test_an_error_undoes_all_rows_and_the_rest_of_the_data_is_ignored"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    receive = copy_in.CopyIn._receive

    async def received(self: copy_in.CopyIn) -> copy_in._Received:
        try:
            return await receive(self)
        except SqlError:
            return copy_in._Received(b"", True)

    patch(copy_in.CopyIn, "_receive", received)
