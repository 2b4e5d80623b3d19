"""``triplicate demo``: runs the demonstration, prints the summary and writes it as JSON."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click

from triplicate.cli import local_cluster, print_table, remarks, run_loop, wait_for_orphans, watch_parent
from triplicate.demo.dataset import unpack
from triplicate.demo.ledger import Findings, run_ledger

BOOKIES = 4


@click.command()
@click.option(
    "--dir", "folder", default="build/demo", show_default=True, help="Folder for the cluster and the results; its cluster is made anew."
)
@click.option("--parent-pipe", type=int, hidden=True)
def demo(folder: str, parent_pipe: int | None) -> None:
    """Run the demonstration on real data.

    Four bookies, 336,776 flights as entries of one ledger, a bookie killed on the way, the writer fenced by another client, everything read
    back and compared. Exit code 0 only if every check holds.
    """
    watch_parent(parent_pipe)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    clear(place / "cluster")
    started = time.monotonic()
    lines = unpack(place / "input").flights.read_bytes().splitlines()[1:]
    with local_cluster(place / "cluster", bookies=BOOKIES) as cluster:
        remarks.print(f"{BOOKIES} bookies are up after {time.monotonic() - started:.1f} s")
        findings = run_loop(run_ledger(cluster, lines))
    summary = summarise(findings, len(lines))
    (place / "summary.json").write_text(json.dumps(summary, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    show(summary, time.monotonic() - started)
    remarks.print(f"summary: {place / 'summary.json'}")
    if not all(findings.verified.values()):
        sys.exit(1)


def clear(cluster: Path) -> None:
    """Delete the cluster of an earlier run, once its processes are gone; anything that is no cluster stays."""
    if (cluster / "cluster.json").exists():
        wait_for_orphans(cluster)
        shutil.rmtree(cluster)


def summarise(findings: Findings, records: int) -> dict[str, Any]:
    """The summary with its fixed keys."""
    return {
        "records_ingested": records,
        "acknowledged": findings.acknowledged,
        "missing": findings.missing,
        "copies_read": findings.copies_read,
        "differing_copies": findings.differing_copies,
        "under_replicated": findings.under_replicated,
        "ensemble_changes": findings.ensemble_changes,
        "killed": [findings.killed],
        "stages": [dataclasses.asdict(stage) for stage in findings.stages],
        "verified": findings.verified,
    }


def show(summary: dict[str, Any], seconds: float) -> None:
    """The summary for a person."""
    stages = [
        (
            stage["name"],
            f"{stage['records']:,}",
            f"{stage['bytes']:,}",
            f"{stage['seconds']:.1f}",
            f"{stage['records'] / stage['seconds']:,.0f}",
        )
        for stage in summary["stages"]
    ]
    headings = ("stage", "records", "bytes", "seconds", "records/s")
    print_table(headings, stages, right=headings[1:], title="stages")
    counts = [(name.replace("_", " "), f"{value:,}") for name, value in summary.items() if isinstance(value, int)]
    print_table(("figure", "value"), counts, right=("value",), title="figures")
    checks = [(name, "yes" if held else "NO") for name, held in summary["verified"].items()]
    print_table(("check", "holds"), checks, title=f"checks, after {seconds:.0f} s in all")
