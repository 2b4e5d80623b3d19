"""Samples count a function once per stack, and shares are differences of two reports."""

from __future__ import annotations

import sys

from benchmarks.sql.sampling import FunctionShare, Sampler, shares


def outer(sampler: Sampler, depth: int) -> None:
    if depth:
        outer(sampler, depth - 1)
    else:
        sampler.sample(0, sys._getframe())


def test_a_function_counts_once_for_each_stack_it_is_on() -> None:
    sampler = Sampler()
    outer(sampler, 3)
    outer(sampler, 0)
    assert sampler.own == {"test_sampling: outer": 2}
    assert sampler.inside["test_sampling: outer"] == 2
    assert sampler.inside["test_sampling: test_a_function_counts_once_for_each_stack_it_is_on"] == 2


def test_shares_are_of_the_samples_between_two_reports() -> None:
    before = {"own": {"a": 10, "b": 5}, "inside": {"a": 10, "b": 15}}
    after = {"own": {"a": 13, "b": 5, "c": 1}, "inside": {"a": 13, "b": 19, "c": 1}}
    found = shares(before, after, 40.0, 3)
    assert found == [FunctionShare("a", 30.0, 30.0), FunctionShare("c", 10.0, 10.0)]


def test_without_samples_there_are_no_shares() -> None:
    report = {"own": {"a": 1}, "inside": {"a": 1}}
    assert shares(report, report, 40.0, 2) == []
