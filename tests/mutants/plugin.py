"""Pytest plugin: applies one mutant before anything is collected, and writes down what each test did."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

_outcomes: dict[str, str] = {}


def patch(owner: object, attribute: str, replacement: object) -> None:
    """Replace an attribute that is there; a mutant whose target has moved must not pass for a survivor."""
    if not hasattr(owner, attribute):
        raise pytest.UsageError(f"the mutant no longer fits: {owner!r} has no {attribute!r}")
    setattr(owner, attribute, replacement)


def pytest_configure(config: pytest.Config) -> None:
    name = os.environ.get("TRIPLICATE_MUTANT")
    if name is None:
        return
    spec = importlib.util.spec_from_file_location(f"mutant_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.apply(patch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        # A failure before the test's own body says nothing about the mutant: the fixture, not the test, met the broken code.
        _outcomes[item.nodeid] = "failed" if report.when == "call" else _outcomes.get(item.nodeid, "broken")
    elif report.skipped:
        _outcomes[item.nodeid] = "skipped"
    elif report.when == "call":
        _outcomes[item.nodeid] = "passed"
    return report


def pytest_sessionfinish() -> None:
    report = os.environ.get("TRIPLICATE_MUTANT_REPORT")
    if report is not None:
        Path(report).write_text(json.dumps(_outcomes))
