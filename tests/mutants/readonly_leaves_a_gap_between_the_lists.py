"""A bookie that becomes read-only leaves the writable list before it joins the read-only one, so clients consider it dead."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import BookieRegistry, BookieServiceInfo

TESTS = ["tests/unit/metadata/test_layout.py::test_between_the_lists_a_bookie_is_in_both_for_a_moment_and_never_in_neither"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def set_readonly(bookies: BookieRegistry, bookie_id: str, info: BookieServiceInfo, readonly: bool) -> None:
        await bookies.unregister(bookie_id)
        await bookies.register(bookie_id, info, readonly=readonly)

    patch(BookieRegistry, "set_readonly", set_readonly)
