"""An entry log is deleted although it holds the only record of a fence, which a rebuild of the index then loses."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_index_deleted_fences.py::test_a_fence_is_carried_out_of_a_log_that_goes"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.index import Index

    lives_in = Index.lives_in
    patch(Index, "lives_in", lambda self, log: (lives_in(self, log)[0], False))
