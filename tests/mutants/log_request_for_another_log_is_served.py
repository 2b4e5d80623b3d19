"""A writer serves a request to publish that was meant for the log that had the name before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

TESTS = ["tests/unit/log/store/test_head_store_identity.py::test_a_request_for_the_first_log_is_not_served_in_the_next"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core import publish_request
    from triplicate.log.publishing import request_queue

    decode = publish_request.decode_request

    def without_id(data: bytes, name: str) -> Any:
        return replace(decode(data, name), log_id="")

    patch(request_queue, "decode_request", without_id)
