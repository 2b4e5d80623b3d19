"""After a failed read a tail continues with the range that it read ahead, and skips entries."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.read.tail import Tail

TESTS = ["tests/unit/client/test_hedged_reads.py::test_a_tail_whose_read_failed_continues_with_the_same_entries"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Tail, "_drop_ahead", lambda self: None)
