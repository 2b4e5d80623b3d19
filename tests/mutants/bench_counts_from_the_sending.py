"""The benchmark measures latency from the moment of sending, so a stall delays only the one append that was under way."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/benchmarks/ledger/test_our_client.py::test_a_stall_counts_for_every_append_that_it_held_up"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    import time

    from benchmarks.ledger.our_client import Rated

    def send_now(self: Rated, due: int, payload: bytes) -> None:
        del due
        send(self, time.monotonic_ns(), payload)

    send = Rated._send
    patch(Rated, "_send", send_now)
