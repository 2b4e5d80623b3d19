"""docs/compatibility.md names tests that exist, and the check of it sees what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.compatibility import PAGE, exists, outcomes_of, read_rows, reports_of, row_faults, unproven
from tests.house.source import tree_of

HEAD = "| feature | state | what to know | proof | where |\n|---|---|---|---|---|\n"
HERE = "tests/house/test_compatibility.py"
LAWFUL = f"| Delete | yes | | `{HERE}::test_the_page_names_tests_that_exist` | `make test` |"

OFFENDING: list[tuple[str, str]] = [
    (f"| Delete | yes | | `{HERE}::test_that_was_renamed` | `make test` |", "there is no test"),
    ("| Delete | yes | | `tests/house/test_gone.py::test_x` | `make test` |", "there is no test"),
    (f"| Delete | yes | | `{HERE}::OFFENDING` | `make test` |", "there is no test"),
    (f"| Delete | yes | | `{HERE}` | `make test` |", "there is no test"),
    ("| Delete | yes | works | | `make test` |", "a yes without a test"),
    ("| Delete | maybe | | | |", "the state is 'maybe'"),
    ("| Delete | no | | | |", "no needs a reason"),
    (f"| Delete | later | soon | `{HERE}::test_the_page_names_tests_that_exist` | `make test` |", "later needs a reason, and no test"),
    (f"| Delete | yes | | `{HERE}::test_the_page_names_tests_that_exist` | `make interop` |", "runs in make test"),
    (f"| Delete | yes | | `{HERE}::test_the_page_names_tests_that_exist` | `make test`, `make tests` |", "no such target"),
    (f"{LAWFUL}\n{LAWFUL}", "also on line"),
]


def test_the_page_names_tests_that_exist() -> None:
    rows = read_rows(PAGE.read_text(encoding="utf-8"))
    assert len(rows) > 50
    assert list(row_faults(rows, parse=tree_of)) == []


@pytest.mark.parametrize(("row", "message"), OFFENDING)
def test_an_offending_row_is_reported(row: str, message: str) -> None:
    faults = list(row_faults(read_rows(HEAD + row)))
    assert len(faults) == 1
    assert message in faults[0]


def test_a_lawful_row_passes() -> None:
    rows = read_rows(HEAD + LAWFUL)
    assert len(rows) == 1
    assert list(row_faults(rows)) == []
    assert list(row_faults(read_rows(HEAD + LAWFUL.replace("exist`", "exist[with-parameters]`")))) == []


def test_a_proof_that_make_test_leaves_out_is_reported(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("@pytest.mark.deep\ndef test_b():\n    pass\n\n\n@pytest.mark.slow\ndef test_c():\n    pass\n")
    rows = read_rows(f"{HEAD}| Delete | yes | | `test_a.py::test_b`<br>`test_a.py::test_c` | `make test` |")
    faults = list(row_faults(rows, tmp_path))
    assert len(faults) == 1
    assert "test_a.py::test_b is marked deep" in faults[0]


def test_methods_of_test_classes_are_found(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("class TestA:\n    def test_b(self):\n        pass\n")
    assert exists("test_a.py::TestA::test_b", tmp_path)
    assert not exists("test_a.py::TestA::test_c", tmp_path)
    assert not exists("test_a.py::test_b", tmp_path)


REPORT = """<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="test_good[one]"/>
<testcase classname="tests.unit.test_a" name="test_good[two]"/>
<testcase classname="tests.unit.test_a" name="test_half[one]"/>
<testcase classname="tests.unit.test_a" name="test_half[two]"><failure message="x"/></testcase>
<testcase classname="tests.unit.test_a" name="test_left_out"><skipped message="x"/></testcase>
<testcase classname="tests.unit.test_a" name="test_torn_down"><error message="x"/></testcase>
<testcase classname="tests.unit.test_a" name="test_torn_down"/>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("test_good", None),
        ("test_good[two]", None),
        ("test_half[one]", None),
        ("test_half", "failed"),
        ("test_left_out", "skipped"),
        ("test_torn_down", "failed"),
        ("test_goo", "did not run"),
        ("test_good[three]", "did not run"),
    ],
)
def test_a_proof_must_have_run_and_passed(tmp_path: Path, test: str, message: str | None) -> None:
    (tmp_path / "unit.xml").write_text(REPORT)
    rows = read_rows(f"{HEAD}| Delete | yes | | `tests/unit/test_a.py::{test}` | `make test` |")
    faults = list(unproven(rows, "test", outcomes_of(reports_of("test", tmp_path))))
    assert [fault.split()[2] for fault in faults] == ([] if message is None else [message.split()[0]])
    assert list(unproven(rows, "interop", {})) == []


def test_a_proof_against_apache_must_pass_in_the_target_that_the_row_names(tmp_path: Path) -> None:
    test = "`tests/interop/test_a.py::test_b`"
    rows = read_rows(f"{HEAD}| Delete | yes | | {test} | `make interop` |\n| List | yes | | {test} | `make interop-full` |")
    assert len(list(unproven(rows, "interop", {}))) == 1
    assert len(list(unproven(rows, "interop-full", {}))) == 2
    (tmp_path / "interop.xml").write_text('<testsuite><testcase classname="tests.interop.test_a" name="test_b[x]"/></testsuite>')
    assert list(unproven(rows, "interop", outcomes_of(reports_of("interop", tmp_path)))) == []
    assert reports_of("test", tmp_path) == []
