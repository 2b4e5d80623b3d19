"""Bytes that come with the end of a TLS handshake reach the protocol before the caller of `start_tls` has its transport."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/client/connection/test_handshake.py::test_bytes_in_one_segment_with_the_end_of_the_handshake_are_understood",
    "tests/unit/runtime/test_metrics_server_guarded.py::test_a_request_at_once_with_the_end_of_the_handshake_is_answered_inside_tls",
    "tests/unit/runtime/test_handshake_gate.py::test_what_arrives_before_the_release_comes_in_order_after_it",
    "tests/unit/runtime/test_real_start_tls.py::test_a_server_hears_a_client_that_sends_at_once_after_it_has_the_transport",
    "tests/unit/runtime/test_real_start_tls.py::test_a_client_hears_a_server_that_sends_at_once_after_it_has_the_transport",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.runtime.handshake_gate import HandshakeGate

    patch(HandshakeGate, "data_received", lambda self, data: self._protocol.data_received(data))
