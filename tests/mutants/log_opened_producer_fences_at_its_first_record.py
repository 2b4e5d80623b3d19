"""An older instance of a producer appends until the newer one has: the newer one's first record is taken for a repetition, and lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/log/writing/test_log_producer.py::test_an_older_instance_appends_nothing_once_a_newer_one_was_opened"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.producer_table import OpenedEpoch, ProducerTable

    def only_checked(self: ProducerTable[Any], name: str, identity: bytes, epoch: int) -> OpenedEpoch:
        self.check_epoch(name, identity, epoch)
        return OpenedEpoch(epoch)

    patch(ProducerTable, "open", only_checked)
