"""The status of the cluster does not show why the repair of a ledger did not end well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.cli.overview.core import status_screen
from triplicate.cli.overview.core.cluster_facts import ClusterFacts, Listed
from triplicate.cli.overview.core.text_table import Section

TESTS = ["tests/unit/cli/overview/core/test_status_screen.py::test_the_reason_of_a_failed_repair_is_shown_and_cut_to_the_width"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    marks = status_screen._marks

    def reasonless(facts: ClusterFacts) -> Section:
        return marks(replace(facts, marks=Listed(tuple(replace(one, reason=one.reason and "-") for one in facts.marks.items))))

    patch(status_screen, "_marks", reasonless)
