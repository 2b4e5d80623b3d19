"""A copy writes the node that marks the target as a cluster before it has copied the rest."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import copying

TESTS = ["tests/unit/metadata/test_copying.py::test_a_copy_that_was_broken_off_is_no_cluster_and_can_be_made_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(
        copying._Copying,
        "_left_out",
        lambda copying_, path: path.rpartition("/")[2] in copying._GENERATORS,
    )
