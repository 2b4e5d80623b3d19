"""The demonstration deletes files of a folder that it did not create."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from triplicate_demo.demo_folder import DemoFolder

TESTS = [
    "tests/unit/demo/test_demo_folder.py::test_a_folder_with_other_files_is_refused_by_name_and_left_alone[changes/thesis.txt]",
    "tests/unit/demo/test_demo_folder.py::test_a_work_folder_put_there_by_others_is_refused",
]


def check(self: DemoFolder) -> None:
    """Whatever is there may go."""
    for name in ("work", "spark", "checkpoint", "changes"):
        shutil.rmtree(self.path / name, ignore_errors=True)


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(DemoFolder, "check", check)
