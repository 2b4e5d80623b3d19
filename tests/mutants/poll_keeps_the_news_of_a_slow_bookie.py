"""While one bookie holds a long poll, no other bookie is polled, however long it is silent."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/client/read/test_long_poll.py::test_a_bookie_that_is_behind_does_not_keep_the_news"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.read.long_poll import LongPoller

    patch(LongPoller, "_pause_over", LongPoller.wake)
