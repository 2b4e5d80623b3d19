"""The tests of a module, found by its name and by imports."""

from __future__ import annotations

import pytest

from scripts.tests_of import holding_tests, modules_named, nearest_tests, subjects

JOURNAL = "src/triplicate/bookie/journal/journal.py"
JOURNAL_FILES = "src/triplicate/bookie/journal/journal_files.py"
GROUP_WRITER = "src/triplicate/bookie/journal/group_writer.py"
NAMED = "tests/unit/bookie/journal/test_journal_files_on_disk.py"
IMPORTING = "tests/unit/bookie/test_bookie_crashes.py"
MUTANT = "tests/mutants/journal_is_not_synced.py"
GRAPH = {
    JOURNAL: frozenset({GROUP_WRITER}),
    JOURNAL_FILES: frozenset[str](),
    GROUP_WRITER: frozenset[str](),
    "src/triplicate/bookie/bookie.py": frozenset({JOURNAL}),
    NAMED: frozenset({JOURNAL}),
    IMPORTING: frozenset({JOURNAL_FILES, "src/triplicate/bookie/bookie.py"}),
    "tests/unit/bookie/journal/journal_rig.py": frozenset({JOURNAL_FILES}),
    MUTANT: frozenset({JOURNAL_FILES}),
}


@pytest.mark.parametrize(
    ("test", "module"),
    [
        ("tests/unit/wire/test_frames.py", "src/triplicate/wire/frames.py"),
        ("tests/unit/wire/test_frames_cut_anywhere.py", "src/triplicate/wire/frames.py"),
        ("tests/unit/wire/test_v3.py", "src/triplicate/wire/v3/__init__.py"),
        ("tests/unit/wire/test_wire_of_both_versions.py", "src/triplicate/wire/__init__.py"),
        ("tests/unit/wire/v3/test_bulk.py", "src/triplicate/wire/v3/bulk.py"),
        ("tests/unit/scripts/test_quick.py", "scripts/quick.py"),
        ("tests/unit/simulator/test_plan.py", "simulator/triplicate_simulator/plan.py"),
        ("tests/property/test_bulk_of_messages.py", "src/triplicate/wire/v3/bulk.py"),
        ("tests/unit/wire/test_bulk.py", None),
        ("tests/unit/wire/test_framesets.py", None),
        ("tests/unit/wire/test_quick.py", None),
        ("tests/property/test_everything.py", None),
    ],
)
def test_a_test_file_belongs_to_the_module_of_its_name_in_the_same_folder(test: str, module: str | None) -> None:
    modules = ["frames.py", "v2.py", "v3/__init__.py", "v3/bulk.py", "__init__.py"]
    files = [f"src/triplicate/wire/{name}" for name in modules] + ["scripts/quick.py", "simulator/triplicate_simulator/plan.py"]
    assert subjects([*files, test]).get(test) == module


def test_the_longest_name_counts() -> None:
    assert subjects(GRAPH)[NAMED] == JOURNAL_FILES


def test_tests_are_found_by_name_first_and_by_import_second() -> None:
    assert holding_tests(JOURNAL_FILES, GRAPH) == ([NAMED], [IMPORTING, MUTANT])


def test_the_nearest_tests_reach_a_module_that_none_imports() -> None:
    assert holding_tests(GROUP_WRITER, GRAPH) == ([], [])
    assert nearest_tests(GROUP_WRITER, GRAPH) == [NAMED]


@pytest.mark.parametrize("name", ["journal", "journal.journal", "triplicate.bookie.journal.journal", "bookie/journal/journal.py", JOURNAL])
def test_a_module_is_found_by_its_name_or_path(name: str) -> None:
    assert modules_named(name, GRAPH) == [JOURNAL]
