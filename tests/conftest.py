"""For all tests: property tests draw new examples on a developer's machine, and the same ones each time where CI is set.

A failure found by chance on somebody else's change would say nothing about that change.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.examples import examples

settings.register_profile("usual", max_examples=examples(100))
settings.register_profile("ci", max_examples=examples(100), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "usual")

CURRENT_TEST = os.environ.get("TRIPLICATE_CURRENT_TEST")
"""File that holds the name of the test that runs, for a runner that ends a process which takes too long."""


def pytest_runtest_logstart(nodeid: str) -> None:
    if CURRENT_TEST:
        Path(CURRENT_TEST).write_text(nodeid, encoding="utf-8")


# The modules and tests that are collected live until the end. The collector of garbage would visit them again and again.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


USED_BEFORE_S = pytest.StashKey[float]()


def used_s() -> float:
    """Processor time of this process and of every descendant that its parent has waited for, in seconds."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[USED_BEFORE_S] = used_s()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Write a test's processor time, with that of its fixtures, into the report that `make times` reads."""
    try:
        return (yield)
    finally:
        item.user_properties.append(("processor_s", f"{used_s() - item.stash[USED_BEFORE_S]:.2f}"))
