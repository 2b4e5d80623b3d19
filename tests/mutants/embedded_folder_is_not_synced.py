"""The bookie of an embedded folder acknowledges what is not on the disk, as that of a database in memory may."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/embedded/test_embedded_database.py::test_a_commit_to_a_folder_is_synced_before_it_returns",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.runtime.real_disk import RealFile

    patch(RealFile, "sync", lambda self: None)
