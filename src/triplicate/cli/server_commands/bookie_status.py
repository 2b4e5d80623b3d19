"""``triplicate bookie status``: the state of one bookie, from the cluster, its directories, and its metrics."""

from __future__ import annotations

import dataclasses
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import click

from triplicate.bookie import DoorReport, Inspection, InspectionReport, bookie_id_of, door_report, memory_limits
from triplicate.cli.overview.core.text_table import size_text
from triplicate.cli.process.serving import metrics_url, run_loop
from triplicate.cli.server_commands.bookie_command import bookie, bookie_options, configuration_of, with_cluster
from triplicate.cli.terminal.output import print_json, print_table
from triplicate.client import Client
from triplicate.config import BookieSettings, ClientSettings, Configuration, MetadataSettings, ProcessSettings, SecuritySettings
from triplicate.errors import BookieUnavailable, ConfigError, TriplicateError
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, real_host

METRICS_TIMEOUT_S = 3.0
METRICS = {
    "bookie_SERVER_STATUS": "status (1 writable, 0 read-only)",
    "bookkeeper_server_CONNECTIONS": "connections",
    "bookkeeper_server_ADD_ENTRY_REQUEST_total": "adds received",
    "bookkeeper_server_READ_ENTRY_REQUEST_total": "reads received",
    "bookie_journal_JOURNAL_SYNC_total": "groups synced",
    "bookie_journal_JOURNAL_MEMORY_USED": "bytes waiting for the journal",
    "bookie_write_cache_size": "bytes in the write cache",
    "bookie_unfinished_frames_bytes": "bytes of unfinished frames",
    "bookie_answers_waiting_bytes": "bytes of answers waiting",
    "bookie_reads_outstanding": "reads outstanding",
    "bookkeeper_server_READ_ENTRY_LONG_POLL_WAITING": "long polls waiting",
    "bookie_ledger_handles": "ledgers in memory",
    "bookie_ledger_dir_warning": "disk warning",
    "bookie_reserve_bytes": "bytes in reserve",
    "triplicate_bookie_unauthenticated_connections": "connections not admitted yet",
    "bookie_gc_ACTIVE_LEDGER": "ledgers at the last collection",
    "bookie_gc_TRASH_LEDGERS": "ledgers in the trash",
    "bookie_gc_TRASH_SPACE_BYTES": "bytes in the trash",
    "scrubber_detectedScrubErrors_total": "damaged entries found by the scrubber",
    "bookie_scrub_bytes_total": "bytes read by the scrubber",
}
"""The metrics shown, and their labels."""


@bookie.command("status")
@bookie_options
@click.option("--offline", is_flag=True, help="Read only the directories.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def status(context: click.Context, config: str | None, flags: Mapping[str, object], offline: bool, as_json: bool) -> None:
    """Show one bookie: its registration, cookies, incarnation, journals, entry logs, index, sizes, limits.

    Name a running bookie by --bookie-id and --metadata, or by its --config. Directories are shown if they are on this machine.
    """
    configuration = configuration_of(context, config, flags)
    facts = gather(configuration, offline=offline)
    if as_json:
        print_json(facts)
    else:
        print_table(("bookie", facts["bookie"]), rows_of(facts))


def gather(configuration: Configuration, *, offline: bool) -> dict[str, Any]:
    """Collect the facts about the bookie.

    Raises:
        ConfigError: neither a cluster nor directories are available.
    """
    settings = configuration.get(BookieSettings)
    bookie_id = bookie_id_of(settings)
    uri = configuration.get(MetadataSettings).uri
    facts: dict[str, Any] = {"bookie": bookie_id}
    if uri and not offline:

        async def query(host: Host, cluster: ClusterMetadata) -> dict[str, Any]:
            return await query_cluster(host, cluster, bookie_id, configuration)

        facts["cluster"] = with_cluster("bookie-status", uri, query)
    found = _directories(settings, bookie_id)
    if any(directory.there for directory in found.directories):
        facts.update({key: value for key, value in dataclasses.asdict(found).items() if value})
        facts["door"] = _door(settings, configuration.get(SecuritySettings))
        # The settings of a bookie on another machine are not known.
        facts["memory_bound_bytes"] = sum(bound.bytes for bound in memory_limits(settings))
    elif "cluster" not in facts:
        raise ConfigError(
            f"bookie {bookie_id} is not known on this machine: give --metadata URI, or --config with the directories "
            f"({', '.join(directory.path for directory in found.directories)} do not exist)"
        )
    elif not facts["cluster"]["known"] and facts["cluster"]["registered"] == "no":
        names = ", ".join(facts["cluster"]["known_bookies"]) or "none"
        raise ConfigError(f"the cluster knows no bookie {bookie_id}: correct bookie.bookie_id; there are: {names}")
    process = configuration.get(ProcessSettings)
    if process.metrics_port and not offline:
        facts["metrics"] = read_metrics(metrics_url(process.metrics_host, process.metrics_port))
    return facts


def _door(settings: BookieSettings, security: SecuritySettings) -> dict[str, Any]:
    """The protection of the door, or why the bookie would not start with it."""

    async def report() -> dict[str, Any]:
        try:
            found = door_report(settings, security, real_host("bookie-status"))
        except ConfigError as error:
            return {"problem": str(error)}
        return {**dataclasses.asdict(found), "summary": found.summary + certificate_text(found)}

    return run_loop(report())


def certificate_text(door: DoorReport) -> str:
    """When the certificate expires, to follow the summary of the door; empty without one."""
    if door.certificate_days is None:
        return ""
    days = door.certificate_days
    return f"; the certificate expires in {days:.1f} days" if days > 0 else f"; the certificate expired {-days:.1f} days ago"


def _directories(settings: BookieSettings, bookie_id: str) -> InspectionReport:
    async def inspect() -> InspectionReport:
        return Inspection(real_host("bookie-status"), settings, bookie_id, "").facts()

    return run_loop(inspect())


async def query_cluster(host: Host, cluster: ClusterMetadata, bookie_id: str, configuration: Configuration) -> dict[str, Any]:
    """The facts about the bookie from metadata and from the bookie itself."""
    incarnation = await cluster.incarnations.get(bookie_id)
    cookie = await cluster.cookies.get(bookie_id)
    facts: dict[str, Any] = {
        "instance_id": cluster.instance_id,
        "known": cookie is not None,
        "incarnation": incarnation.number,
        "visited": incarnation.visited,
        "registered": "no",
    }
    if cookie is None:
        facts["known_bookies"] = await cluster.cookies.bookie_ids()
    try:
        info = await cluster.bookies.resolve(bookie_id)
    except BookieUnavailable:
        return facts
    facts["registered"] = "read-only" if bookie_id in await cluster.bookies.readonly() else "writable"
    facts["address"] = "{}:{}".format(*info.address)
    settings, security = configuration.get(ClientSettings), configuration.get(SecuritySettings)
    async with Client(host, cluster, settings, security=security) as client:
        try:
            space = await client.bookie_info(bookie_id)
        except (TriplicateError, OSError) as error:
            facts["answers"] = str(error)
        else:
            facts["answers"] = "yes"
            facts["free_bytes"], facts["total_bytes"] = space.free_bytes, space.total_bytes
    return facts


def read_metrics(url: str) -> dict[str, float] | str:
    """The values of `METRICS`, or the reason why there are none."""
    try:
        with urllib.request.urlopen(url, timeout=METRICS_TIMEOUT_S) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, OSError) as error:
        return f"not available from {url}: {error}"
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name in METRICS:
            found[name] = float(value)
    return found


def rows_of(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The rows of the table."""
    cluster = facts.get("cluster")
    if cluster is not None:
        stranger = "" if cluster["known"] else "; the cluster has no cookie of it"
        yield "registered", cluster["registered"] + (f" at {cluster['address']}" if "address" in cluster else "") + stranger
        if "answers" in cluster:
            free = f", {size_text(cluster['free_bytes'])} of {size_text(cluster['total_bytes'])} free" if "free_bytes" in cluster else ""
            yield "answers", cluster["answers"] + free
        visited = "" if cluster["visited"] else ", not visited: missing entries are unknown, not absent"
        yield "incarnation", f"{cluster['incarnation']}{visited}"
        yield "cluster", cluster["instance_id"]
    for directory in facts.get("directories", ()):
        yield f"directory {directory['path']}", _directory_text(directory)
    for journal in facts.get("journals", ()):
        mark = journal["mark"]
        where = f"mark at file {mark['file_number']}, byte {mark['offset']}, flush {mark['flush_number']}" if mark else "no mark"
        spares = f" and {journal['spare_files']} spare" if journal["spare_files"] else ""
        yield f"journal {journal['directory']}", f"{journal['files']} files{spares}, {size_text(journal['size_bytes'])}; {where}"
    index = facts.get("index")
    if index is not None:
        yield "entry logs", f"{index['entry_logs']} files, {size_text(index['entry_log_bytes'])}"
        yield "index", index["problem"] or _index_text(index)
        yield "trash", f"{index['trash_ledgers']} ledgers, {size_text(index['trash_bytes'])}"
    elif "directories" in facts:
        yield "index", "in use by the running bookie"
    yield from _scrub_rows(facts.get("scrub"))
    door = facts.get("door")
    if door is not None:
        yield "door", door.get("problem") or door["summary"]
    metrics = facts.get("metrics")
    if isinstance(metrics, str):
        yield "metrics", metrics
    elif metrics is not None:
        for name, value in metrics.items():
            yield METRICS[name], f"{value:,.0f}"
    if "memory_bound_bytes" in facts:
        yield "memory, sum of the bounds", size_text(facts["memory_bound_bytes"])
    yield "seen", time.strftime("%Y-%m-%d %H:%M:%S")


def _scrub_rows(scrub: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if scrub is None:
        return
    last, present = scrub["last"], scrub["present"]
    yield "last full scrub", _pass_text(last, last["ended_ms"]) if last is not None else "none yet"
    if present is not None:
        logs = present["last_log"] - present["first_log"] + 1
        done = present["next_log"] - present["first_log"]
        yield "scrub", f"{done} of {logs} entry logs read; since {_pass_text(present, present['began_ms'])}"
    for damage in scrub["damage"]:
        entries = f"entry {damage['first']}" if damage["first"] == damage["last"] else f"entries {damage['first']} to {damage['last']}"
        yield "damaged", f"{entries} of ledger {damage['ledger_id']} in entry log {damage['log']}: {damage['reason']}"


def _pass_text(one: Mapping[str, Any], time_ms: int) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1000))
    faults = f", {one['index_faults']} faults of the index" if one["index_faults"] else ""
    return f"{when}: {one['entries']} entries, {size_text(one['size_bytes'])}, {one['damaged']} damaged{faults}"


def _index_text(index: Mapping[str, Any]) -> str:
    unfinished = "" if index["complete"] else "; unfinished, a start rebuilds it"
    return (
        f"{index['ledgers']} ledgers, {index['kept_fences']} fences of deleted ones; flush {index['flush']}, version "
        f"{index['version']}, {size_text(index['size_bytes'])}{unfinished}"
    )


def _directory_text(directory: Mapping[str, Any]) -> str:
    if not directory["there"]:
        return "is not there"
    owner = f"cookie of {directory['bookie_id']}, incarnation {directory['incarnation']}" if directory["bookie_id"] else "no cookie"
    use = "in use; " if directory["in_use"] else ""
    return (
        f"{use}{owner}; {directory['files']} files, {size_text(directory['data_bytes'])}; reserve {size_text(directory['reserve_bytes'])}; "
        f"{size_text(directory['free_bytes'])} of {size_text(directory['total_bytes'])} free"
    )
