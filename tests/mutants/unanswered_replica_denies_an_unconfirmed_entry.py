"""A read of unconfirmed entries accepts one replica's "no entry" although another did not answer."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/client/read/test_batch_read.py::test_that_no_replica_delivers_is_not_that_there_is_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import ReadPlan

    patch(ReadPlan, "is_absent", property(lambda self: len(self._absent) > 0))
