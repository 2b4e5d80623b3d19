"""``triplicate bookie``: one bookie process, and commands on a bookie's directories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import click

from triplicate.bookie import Bookie, Replacement, bookie_id_of, mark_visited
from triplicate.cli.process.probes import ServedProcess, autorecovery_problems, bookie_problems, bookie_readiness
from triplicate.cli.process.serving import run_loop, serve_process
from triplicate.cli.terminal.lazy_subcommands import LazySubcommands
from triplicate.cli.terminal.options import load_configuration, metadata_access, settings_options
from triplicate.cli.terminal.output import confirm, print_json
from triplicate.config import (
    AutorecoverySettings,
    BookieSettings,
    ClientSettings,
    Configuration,
    MetadataSettings,
    ProcessSettings,
    SecuritySettings,
)
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ConfigError
from triplicate.metadata import ClusterMetadata, open_cluster
from triplicate.runtime import Host, Metrics, keep_freed_memory, real_host, sleep
from triplicate.security import gaps_of_bookie, refuse_gaps

Result = TypeVar("Result")

SECTIONS = (BookieSettings, MetadataSettings, ProcessSettings, AutorecoverySettings, ClientSettings, LogClientSettings, SecuritySettings)
"""Those of clients are for auto-recovery in the bookie's process."""
WATCH_INTERVAL_S = 0.5
"""How late the watches of a bookie may be. Only auto-recovery has watches, and an idle bookie is not to wake for them 25 times a second."""
bookie_options = settings_options(*SECTIONS)


@dataclass(frozen=True)
class GroupOptions:
    """The options before the subcommand on the command line."""

    config: str | None
    flags: Mapping[str, object]


HERE = "triplicate.cli.server_commands"


@click.group(
    cls=LazySubcommands,
    invoke_without_command=True,
    places={
        "compact": f"{HERE}.bookie_upkeep:compact",
        "decommission": f"{HERE}.bookie_decommission:decommission",
        "flush": f"{HERE}.bookie_upkeep:flush",
        "gc": f"{HERE}.bookie_upkeep:collect_garbage",
        "list": f"{HERE}.bookie_list:list_bookies",
        "rebuild-index": f"{HERE}.bookie_rebuild:rebuild",
        "refill": f"{HERE}.refill_command:refill",
        "set-readonly": f"{HERE}.bookie_read_only:set_read_only",
        "status": f"{HERE}.bookie_status:status",
        "user": f"{HERE}.bookie_users:user",
    },
)
@bookie_options
@click.option("--parent-pipe", type=int, hidden=True)
@click.option("--ready-pipe", type=int, hidden=True)
@click.pass_context
def bookie(
    context: click.Context, config: str | None, flags: Mapping[str, object], parent_pipe: int | None, ready_pipe: int | None
) -> None:
    """Run a bookie, or inspect and repair its directories.

    Without a subcommand the bookie runs until SIGTERM or Ctrl-C.

    Every option is also a key of the --config file and a variable TRIPLICATE_BOOKIE_...; docs/reference/settings.md explains each.
    """
    context.obj = GroupOptions(config, flags)
    if context.invoked_subcommand is None:
        run_bookie(load_configuration(SECTIONS, config, flags), parent_pipe, ready_pipe)


def require_identity(configuration: Configuration) -> None:
    """Check that a bookie's name and directories were chosen. Raises ConfigError."""
    names = ("bookie.bookie_id", "bookie.advertised_address", "bookie.host", "bookie.port")
    configuration.require(names, ("bookie.journal_directories",), ("bookie.ledger_directories",))


def run_bookie(configuration: Configuration, parent_pipe: int | None, ready_pipe: int | None) -> None:
    require_identity(configuration)
    settings = configuration.get(BookieSettings)
    uri, session_timeout_s = metadata_uri(configuration), configuration.get(MetadataSettings).session_timeout_s
    security = configuration.get(SecuritySettings)
    refuse_gaps(security, bookie_process_gaps(configuration))
    keep_freed_memory()
    heals = configuration.get(AutorecoverySettings).in_bookie
    if heals:
        # Imported here: a bookie without auto-recovery does not pay for the client's modules, and one with it not while it serves.
        from triplicate.cli.process.autorecovery_process import start_autorecovery

    async def start(host: Host, metrics: Metrics) -> ServedProcess:
        access = metadata_access(host, configuration)
        cluster = await open_cluster(uri, host, session_timeout_s=session_timeout_s, watch_interval_s=WATCH_INTERVAL_S, access=access)
        try:
            server = await Bookie.start(host, settings, cluster, metrics, security=security)
        except BaseException:
            await cluster.aclose()
            raise
        keep_only_needed_copies(server, host, cluster, configuration, metrics)
        healing = start_autorecovery(host, cluster, configuration, metrics, server.bookie_id) if heals else None

        async def stop() -> None:
            try:
                if healing is not None:
                    await healing.stop()
            finally:
                try:
                    await server.stop()
                finally:
                    await cluster.aclose()

        def problems() -> list[str]:
            return [*bookie_problems(server), *(autorecovery_problems(healing.daemon) if healing is not None else ())]

        facts: dict[str, object] = {"bookie": server.bookie_id, "address": "{}:{}".format(*server.address)}
        return ServedProcess(facts, stop, server.wait_failed, problems, lambda: bookie_readiness(server))

    name = settings.bookie_id or "bookie"
    serve_process(name, configuration.get(ProcessSettings), start, security=security, parent_pipe=parent_pipe, ready_pipe=ready_pipe)


def bookie_process_gaps(configuration: Configuration) -> Iterator[str]:
    """The gaps of a bookie's process; see `gaps_of_bookie`."""
    return gaps_of_bookie(
        configuration.get(BookieSettings),
        configuration.get(AutorecoverySettings),
        configuration.get(MetadataSettings),
        configuration.get(ClientSettings),
        configuration.get(ProcessSettings),
        configuration.get(SecuritySettings),
    )


def keep_only_needed_copies(server: Bookie, host: Host, cluster: ClusterMetadata, configuration: Configuration, metrics: Metrics) -> None:
    """Let a bookie delete its copies that no ledger needs any more, if the settings say so."""
    wait_s = configuration.get(AutorecoverySettings).unneeded_copies_wait_s

    async def delete() -> None:
        # The first round only takes notes. The modules of the client are imported after the first wait.
        await sleep(host.clock, wait_s)
        from triplicate.cli.process.autorecovery_process import delete_unneeded_copies

        await delete_unneeded_copies(host, cluster, configuration, metrics, server.bookie_id, server.storage)

    if wait_s > 0:
        server.add_chore("unneeded copies", delete)


def metadata_uri(configuration: Configuration) -> str:
    """The URI of the cluster's metadata.

    Raises:
        ConfigError: it is not set.
    """
    uri = configuration.get(MetadataSettings).uri
    if not uri:
        raise ConfigError("metadata.uri is not set: give --metadata sqlite:///… or zk://…, or put it into the --config file")
    return uri


def configuration_of(context: click.Context, config: str | None, flags: Mapping[str, object]) -> Configuration:
    """The settings for a subcommand. Its own options override those before it."""
    group = context.find_object(GroupOptions) or GroupOptions(None, {})
    return load_configuration(SECTIONS, config or group.config, {**group.flags, **flags})


def with_cluster(
    name: str, uri: str, work: Callable[[Host, ClusterMetadata], Awaitable[Result]], configuration: Configuration | None = None
) -> Result:
    """Run a function with the cluster's metadata.

    Args:
        configuration: has this process's access to the metadata; None: the variables have it.
    """

    async def body() -> Result:
        host = real_host(name)
        cluster = await open_cluster(uri, host, access=metadata_access(host, configuration))
        try:
            return await work(host, cluster)
        finally:
            await cluster.aclose()

    return run_loop(body())


@bookie.command("format")
@bookie_options
@click.option("--replace", "replace", is_flag=True, help="The disks were lost: give the bookie empty directories and a new incarnation.")
@click.option("--visited", "visited", is_flag=True, help="Its ledgers were replicated again: it may deny entries that it does not hold.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def format_bookie(
    context: click.Context, config: str | None, flags: Mapping[str, object], replace: bool, visited: bool, yes: bool, as_json: bool
) -> None:
    """Give a bookie empty directories under the same id after its disks were lost.

    The directories must be empty and the bookie must be stopped. Until its ledgers are visited, it answers "unknown" for lost entries.
    """
    if replace == visited:
        raise click.UsageError("give --replace after disks were lost, or --visited once the lost copies were restored")
    configuration = configuration_of(context, config, flags)
    require_identity(configuration)
    facts = _replace(configuration, yes) if replace else _visited(configuration, yes)
    if as_json:
        print_json(facts)
    elif replace:
        click.echo(f"bookie {facts['bookie']} begins incarnation {facts['incarnation']}; start it, then have its entries copied")
        click.echo(f"back with `triplicate bookie refill {facts['bookie']}`")
    else:
        click.echo(f"bookie {facts['bookie']} " + ("is visited" if facts["changed"] else "needed no visit"))


def _replace(configuration: Configuration, yes: bool) -> dict[str, object]:
    settings, uri = configuration.get(BookieSettings), metadata_uri(configuration)

    async def check(host: Host, cluster: ClusterMetadata) -> Replacement:
        replacement = Replacement(host, settings, cluster)
        await replacement.check()
        return replacement

    async def carry_out(host: Host, cluster: ClusterMetadata) -> int:
        return (await Replacement(host, settings, cluster).carry_out()).number

    found = with_cluster("bookie-format", uri, check, configuration)
    if not yes:
        confirm(
            f"Every copy that bookie {found.bookie_id} held is given up, and {', '.join(found.directories.configured)} become its "
            "directories. Go on?",
        )
    return {"bookie": found.bookie_id, "incarnation": with_cluster("bookie-format", uri, carry_out, configuration)}


def _visited(configuration: Configuration, yes: bool) -> dict[str, object]:
    bookie_id = bookie_id_of(configuration.get(BookieSettings))
    if not yes:
        confirm(
            f"From now on bookie {bookie_id} denies entries that it does not hold. If copies that it lost were not restored, acknowledged "
            "entries may be lost. Continue?",
        )

    async def work(host: Host, cluster: ClusterMetadata) -> bool:
        return await mark_visited(cluster, bookie_id)

    return {"bookie": bookie_id, "changed": with_cluster("bookie-format", metadata_uri(configuration), work, configuration)}
