"""One page of a scan passes over any number of expired keys."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv import KeyRange

TESTS = ["tests/unit/kv/storage/test_rocks_copy.py::test_a_page_of_a_scan_passes_over_a_bounded_number_of_expired_keys"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.storage.rocks_copy import RocksCopy, ScannedPage

    original = RocksCopy.scan

    def scan(self: RocksCopy, keys: KeyRange, limit: int, limit_bytes: int, time_ms: int, *, with_values: bool = True) -> ScannedPage:
        page = original(self, keys, limit, limit_bytes, time_ms, with_values=with_values)
        while not page.items and page.cursor is not None:
            page = original(self, keys.from_cursor(page.cursor), limit, limit_bytes, time_ms, with_values=with_values)
        return page

    patch(RocksCopy, "scan", scan)
