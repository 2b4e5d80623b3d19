"""The record of a repair's progress outlives its worker, and operators see a repair that nobody makes."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import NoNode
from triplicate.metadata import RepairProgress
from triplicate.metadata.core.own_paths import repair_progress_path
from triplicate.metadata.repair_progress import RepairProgressRecords, encode_repair_progress

TESTS = [
    "tests/unit/metadata/test_repair_progress.py::test_the_record_is_replaced_and_ends_with_the_session_of_its_worker",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def write(records: RepairProgressRecords, ledger_id: int, progress: RepairProgress) -> None:
        path, data = repair_progress_path(records._root, ledger_id), encode_repair_progress(progress)
        try:
            await records._tree.set(path, data)
        except NoNode:
            await records._tree.create(path, data, parents=True)

    patch(RepairProgressRecords, "write", write)
