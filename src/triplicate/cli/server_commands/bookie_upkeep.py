"""``triplicate bookie gc``, ``compact`` and ``flush``: request upkeep of running bookies, and print what they did."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from triplicate.cli.overview.core.text_table import size_text
from triplicate.cli.server_commands.bookie_command import with_cluster
from triplicate.cli.server_commands.bookie_list import uri_of
from triplicate.cli.terminal.options import limit_option, metadata_option
from triplicate.cli.terminal.output import print_json, remarks
from triplicate.errors import ArgumentError, RequestTimeout
from triplicate.metadata import ClusterMetadata, UpkeepAction, UpkeepRequest, UpkeepState
from triplicate.runtime import Host, map_bounded, timeout_at

Command = TypeVar("Command", bound=Callable[..., Any])

BOOKIES_AT_A_TIME = 32
BEGIN_LIMIT_S = 30.0
"""A bookie that has not begun by then does not read requests."""


def _options(command: Command) -> Command:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        limit_option("Longest time to wait for the end. A bookie finishes what it has begun.", 600.0, most_s=86400),
        metadata_option,
        click.option("--all", "everywhere", is_flag=True, help="All registered bookies."),
        click.argument("bookie_ids", metavar="[BOOKIE_ID]...", nargs=-1),
    ):
        command = option(command)
    return command


@click.command("gc")
@_options
@click.option("--force", is_flag=True, help="Also compact by the threshold of major compaction, as BookKeeper's `forcegc` does.")
@click.option("--status", "asks", is_flag=True, help="Only show whether garbage collection and compaction run, and what they did last.")
def collect_garbage(force: bool, asks: bool, **options: Any) -> None:
    """Collect garbage now: delete ledgers whose metadata is gone, and entry logs in which nothing lives.

    The trash period is kept: a ledger that can be undeleted stays. A round under way is waited for, and another one follows. Only
    Triplicate's bookies read such requests.
    """
    if force and asks:
        raise click.UsageError("--status changes nothing: leave out --force")
    _run(UpkeepAction.STATUS if asks else UpkeepAction.GC, force=force, **options)


@click.command("compact")
@_options
@click.option("--major", is_flag=True, help="By the threshold of major compaction instead of that of minor compaction.")
def compact(major: bool, **options: Any) -> None:
    """Compact now: rewrite entry logs of which little is alive, and free their space, at the rate of `bookie.compaction_bytes_per_s`."""
    _run(UpkeepAction.COMPACT, force=major, **options)


@click.command("flush")
@_options
def flush(**options: Any) -> None:
    """Flush now: write the cached entries into entry logs and index, so that the next start replays little."""
    _run(UpkeepAction.FLUSH, force=False, **options)


def _run(
    action: UpkeepAction,
    *,
    force: bool,
    bookie_ids: tuple[str, ...],
    everywhere: bool,
    metadata: str | None,
    limit_s: float,
    as_json: bool,
) -> None:
    if bool(bookie_ids) == everywhere:
        raise click.UsageError("give BOOKIE_IDs, or --all")

    async def work(host: Host, cluster: ClusterMetadata) -> dict[str, UpkeepRequest]:
        registered = (await cluster.bookies.registered()).names
        unknown = [name for name in bookie_ids if name not in registered]
        if unknown:
            raise ArgumentError(f"not registered: {', '.join(unknown)}; there are: {', '.join(registered) or 'none'}")
        return await request_upkeep(host, cluster, registered if everywhere else bookie_ids, action, force=force, limit_s=limit_s)

    answers = with_cluster("bookie-upkeep", uri_of(click.get_current_context(), metadata), work)
    if as_json:
        print_json([answer_json(name, answer) for name, answer in answers.items()])
    else:
        for name, answer in answers.items():
            click.echo(f"bookie {name}: {answer_text(answer)}")
    if not answers:
        remarks.print("no bookie is registered")
    if any(answer.state is not UpkeepState.DONE for answer in answers.values()):
        sys.exit(1)


async def request_upkeep(
    host: Host, cluster: ClusterMetadata, bookie_ids: Sequence[str], action: UpkeepAction, *, force: bool = False, limit_s: float
) -> dict[str, UpkeepRequest]:
    """Request an action of bookies, and wait for the answers; by bookie. One that does not answer in time counts as failed."""

    async def one(bookie_id: str) -> UpkeepRequest:
        try:
            return await _request(host, cluster, bookie_id, action, force, limit_s)
        except RequestTimeout as error:
            return UpkeepRequest(action, force, UpkeepState.FAILED, problem=str(error))

    answers = await map_bounded(one, bookie_ids, most=BOOKIES_AT_A_TIME, name="upkeep")
    return dict(zip(bookie_ids, answers, strict=True))


async def _request(
    host: Host, cluster: ClusterMetadata, bookie_id: str, action: UpkeepAction, force: bool, limit_s: float
) -> UpkeepRequest:
    requests, began = cluster.upkeep_requests, host.clock.monotonic()
    name = await requests.request(bookie_id, action, force=force)
    watch = requests.watch(bookie_id, name)
    try:
        while True:
            found = await requests.read(bookie_id, name)
            if found is None:
                raise RequestTimeout("the request is gone: the session of this command with the metadata ended")
            if found.has_ended:
                return found
            waiting = found.state is UpkeepState.WAITING
            deadline = began + (min(limit_s, BEGIN_LIMIT_S) if waiting else limit_s)
            try:
                async with timeout_at(deadline):
                    await watch.changed()
            except TimeoutError:
                raise RequestTimeout(_unanswered(waiting, host.clock.monotonic() - began)) from None
    finally:
        watch.close()
        await requests.withdraw(bookie_id, name)


def _unanswered(waiting: bool, seconds: float) -> str:
    if waiting:
        return (
            f"it has not begun within {seconds:.1f} s: it hangs, or is of an earlier release or of Apache's, whose HTTP endpoint is "
            "/api/v1/bookie/gc"
        )
    return f"it has not ended within {seconds:.1f} s and goes on; see `triplicate bookie gc --status`"


def answer_json(bookie_id: str, answer: UpkeepRequest) -> dict[str, Any]:
    """An answer for JSON."""
    return {
        "bookie": bookie_id,
        "action": answer.action.value,
        "force": answer.force,
        "state": answer.state.value,
        "problem": answer.problem or None,
        **answer.facts,
    }


def answer_text(answer: UpkeepRequest) -> str:
    """An answer as one line."""
    if answer.state is not UpkeepState.DONE:
        return answer.problem or answer.state.value
    facts = answer.facts
    if answer.action is UpkeepAction.STATUS:
        return _state_text(facts)
    parts = [text(facts[name]) for name, text in (("collection", _collection_text), ("compaction", _compaction_text)) if name in facts]
    if answer.action is UpkeepAction.FLUSH:
        parts = [f"flushed {size_text(facts['cached_bytes'])}" if facts["flushes"] else "nothing to flush"]
    return f"{'; '.join(parts)} in {facts['seconds']:g} s"


def _collection_text(report: Mapping[str, Any]) -> str:
    trash = f", {report['trash']} in the trash" if report["trash"] else ""
    return f"{report['ledgers']} of {report['held']} ledgers deleted{trash}, {size_text(report['freed_bytes'])} freed"


def _compaction_text(report: Mapping[str, Any]) -> str:
    lacking = f", {report['without_room']} without room for a copy" if report["without_room"] else ""
    damaged = f", {report['damaged']} damaged" if report["damaged"] else ""
    sizes = f"{size_text(report['freed_bytes'])} freed, {size_text(report['written_bytes'])} written"
    return f"{report['logs']} entry logs rewritten below {report['threshold']:g} living{lacking}{damaged}, {sizes}"


def _state_text(facts: Mapping[str, Any]) -> str:
    lines = []
    for name, text in (("collection", _collection_text), ("compaction", _compaction_text)):
        running = facts[f"{name}_since_ms"] is not None
        last = facts[f"last_{name}"]
        lines.append(f"{name} {'runs' if running else 'rests'}, last: {text(last) if last is not None else 'none since the start'}")
    return "; ".join(lines)
