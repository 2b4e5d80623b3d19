"""A bookie that is requested to be read-only registers as writable when it starts."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.registration import Registration
from triplicate.metadata import BookieServiceInfo

TESTS = [
    "tests/unit/bookie/test_registration_read_only_requests.py::test_a_requested_bookie_is_read_only_from_its_start",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def register(registration: Registration, info: BookieServiceInfo) -> None:
        await registration._announce(info)

    patch(Registration, "register", register)
