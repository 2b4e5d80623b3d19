"""``triplicate cluster``: create a cluster in a metadata store, copy its metadata to another store, state the racks of its bookies."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable

import click

from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.lazy_subcommands import LazySubcommands
from triplicate.cli.terminal.options import metadata_access, secured
from triplicate.cli.terminal.output import ProgressBar, print_json, print_table, remarks
from triplicate.config import MetadataSettings, SecuritySettings, load
from triplicate.errors import ConfigError
from triplicate.metadata import ClusterMetadata, CopyReport, Tree, cluster_root, copy_metadata, open_cluster, open_tree
from triplicate.runtime import Host, real_host

REMARK_S = 5.0

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


HERE = "triplicate.cli.server_commands"


@click.group(
    cls=LazySubcommands,
    places={
        "audit": f"{HERE}.cluster_audit:audit",
        "autorecovery": f"{HERE}.cluster_autorecovery:autorecovery_group",
        "freeze-ensembles": f"{HERE}.freeze_command:freeze_ensembles",
        "racks": f"{HERE}.racks_command:racks",
        "recover": f"{HERE}.cluster_recovery:recover",
        "safe-to-stop": f"{HERE}.safe_to_stop:safe_to_stop",
        "secure-metadata": f"{HERE}.secure_metadata:secure_metadata",
        "status": f"{HERE}.cluster_status:cluster_status",
        "under-replicated": f"{HERE}.cluster_recovery:under_replicated",
    },
)
def cluster() -> None:
    """Show the state of a cluster, create one, copy its metadata, state racks, or make the copies of lost bookies again.

    A store is sqlite:///absolute/path/metadata.db or zk://host:port;host:port/ledgers, as BookKeeper writes it;
    zk+hierarchical:// and zk+longhierarchical:// require a layout.
    """


def _shared(uri: str) -> str:
    if uri == "memory:":
        raise ConfigError("a memory: store ends with this command; name a store that other processes can open")
    return uri


def _run(work: Callable[[Host], Awaitable[None]]) -> None:
    async def body() -> None:
        await work(real_host("cluster"))

    run_loop(body())


@cluster.command()
@click.argument("uri", metavar="URI")
@_json
def init(uri: str, as_json: bool) -> None:
    """Create a cluster at URI, as BookKeeper's `initnewcluster` does.

    Apache's bookies and clients can join it if it is in ZooKeeper.
    """
    root, _ = cluster_root(secured(_shared(uri)))

    async def work(host: Host) -> None:
        access = metadata_access(host)
        tree = await open_tree(uri, host, access=access)
        try:
            there = await tree.exists(f"{root}/INSTANCEID") is not None
        finally:
            await tree.close()
        if there:
            raise ConfigError(f"there is a cluster at {uri} already; it is left as it is")
        made = await open_cluster(uri, host, create=True, access=access)
        try:
            facts = {"uri": uri, "root": made.root, "instance_id": made.instance_id, "layout": made.paths.manager}
        finally:
            await made.aclose()
        if as_json:
            print_json(facts)
        else:
            click.echo(f"cluster {made.instance_id} is made under {made.root} ({made.paths.manager})")

    _run(work)


@cluster.command("copy-metadata")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--from-config",
    type=click.Path(dir_okay=False),
    help="TOML file with sections metadata and security for FROM alone, if its access differs from that to TO.",
)
@click.option("--force", is_flag=True, help="Copy even if processes use the cluster; their changes during the copy may be lost.")
@_json
def copy(source: str, target: str, from_config: str | None, force: bool, as_json: bool) -> None:
    """Copy a stopped cluster's metadata to another store, verify it, and advance the ledger id generator past all used ids.

    All nodes except ephemeral ones are copied. FROM does not change, except that one ledger id is drawn from it. After the copy, configure
    bookies and clients to use TO.

    TRIPLICATE_METADATA_TLS, _USER and _PASSWORD_FILE apply to TO, and to FROM without --from-config. All nodes are created with their ACL.
    """
    _shared(source)
    root, manager = cluster_root(secured(_shared(target)))

    async def work(host: Host) -> None:
        access = metadata_access(host)
        separate = None if from_config is None else metadata_access(host, load((MetadataSettings, SecuritySettings), file=from_config))
        before = await open_cluster(source, host, access=separate or access)
        try:
            if manager is not None and manager != before.paths.manager:
                raise ConfigError(f"the cluster at {source} keeps its ledgers by {before.paths.manager}, not {manager}")
            report = await _copy(before, await open_tree(target, host, access=access), host, root, force=force)
        finally:
            await before.aclose()
        if as_json:
            print_json({"from": source, "to": target, **dataclasses.asdict(report)})
        else:
            rows = [(name.replace("_", " "), "-" if value is None else value) for name, value in dataclasses.asdict(report).items()]
            print_table(("copied", ""), rows)

    _run(work)


async def _copy(before: ClusterMetadata, tree: Tree, host: Host, root: str, *, force: bool) -> CopyReport:
    """Copy into a tree, and close it."""
    done: dict[str, int] = {}
    started = time.monotonic()
    said = started

    def progress(what: str, count: int) -> None:
        nonlocal said
        done[what] = done.get(what, 0) + count
        bar.advance(count)
        # A pipe shows no bar, and a large cluster takes minutes.
        if time.monotonic() - said >= REMARK_S:
            said = time.monotonic()
            remarks.print(f"{what}: {done[what]} nodes, {said - started:.0f} s")

    try:
        with ProgressBar("nodes copied and verified", None) as bar:
            return await copy_metadata(before, tree, host, root, force=force, progress=progress)
    finally:
        await tree.close()
