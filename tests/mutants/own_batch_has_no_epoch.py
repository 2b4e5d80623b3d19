"""The ledger of a batch that its writer lists says nothing of the epoch, so followers of a database refuse it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.log.publishing.own_batches import OwnBatches

TESTS = [
    "tests/unit/log/publishing/test_own_batches.py::test_a_batch_lies_between_the_writers_other_records",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    honest = OwnBatches.__init__

    def made(self: OwnBatches, *arguments: Any) -> None:
        honest(self, *arguments)
        self._epoch = 0

    patch(OwnBatches, "__init__", made)
