"""The saved table of producers counts records that wait for the next segment: if their writer dies, they are taken for written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

TESTS = ["tests/unit/log/writing/test_log_producer.py::test_records_that_wait_for_the_next_segment_are_not_counted_in_its_table"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.core.producer_table import ProducerTable

    durable = ProducerTable.durable

    def accepted(self: Any) -> Any:
        return [replace(state, sequence=self.last_sequence(state.id)) for state in durable(self)]

    patch(ProducerTable, "durable", accepted)
