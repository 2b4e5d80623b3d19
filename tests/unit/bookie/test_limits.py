"""Every bound on a bookie's memory has settings and metrics, and is on the page for operators."""

from __future__ import annotations

import re

from tests.house.source import ROOT
from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.limits import memory_limits
from triplicate.config import BookieSettings, keys_of
from triplicate.runtime import Metrics


def test_every_bound_names_settings_and_metrics_that_there_are() -> None:
    metrics = Metrics()
    BookieMetrics(metrics)
    known = {key.name for key in keys_of(BookieSettings)}
    exposed = metrics.expose().decode()
    for bound in memory_limits(BookieSettings()):
        assert set(bound.settings) <= known, bound
        assert bound.metric == "-" or re.search(rf"^{bound.metric}(_total)? ", exposed, re.MULTILINE), bound


def test_the_operators_page_has_the_table_of_bounds() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    for bound in memory_limits(BookieSettings()):
        settings = ", ".join(f"`{name}`" for name in bound.settings) or "-"
        metric = f"`{bound.metric}`" if bound.metric != "-" else "-"
        row = f"| {bound.buffer} | {bound.bytes / 2**20:.1f} | {settings} | {metric} | {bound.beyond} |"
        assert row in page, row
    total = sum(bound.bytes for bound in memory_limits(BookieSettings()))
    assert f"{total / 2**20:.1f} MiB" in page
