"""Options of commands have click's own type of numbers, which takes NaN, and infinity where it has one bound."""

from collections.abc import Callable

import click

from triplicate.cli.terminal.options import FiniteRange

TESTS = ["tests/unit/cli/test_main.py::test_no_option_takes_a_number_that_is_not_finite"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(FiniteRange, "convert", click.FloatRange.convert)
