"""A rebuild of the index that meets an unreadable log has already deleted the old index."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/offline/test_rebuild.py::test_the_old_index_comes_back_where_a_log_cannot_be_read"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.offline import rebuild

    patch(rebuild, "restore_index", lambda disk, path: None)
