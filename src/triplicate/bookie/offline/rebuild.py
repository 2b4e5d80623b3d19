"""Rebuilds a stopped bookie's index from its entry logs and journals, fences included. A start does the same when it must."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.directories import CURRENT, Directories
from triplicate.bookie.files import join
from triplicate.bookie.offline.index_backup import back_up_index, discard_backup, restore_index, rollback_rebuild
from triplicate.bookie.offline.inspection import Inspection
from triplicate.bookie.offline.replacement import bookie_id_of
from triplicate.bookie.storage.index import Index
from triplicate.bookie.storage.index_rebuild import INDEX_NAME
from triplicate.bookie.storage.storage import Storage, StorageCallbacks, StorageWorkers
from triplicate.config import BookieSettings
from triplicate.errors import ConfigError, EnvironmentFault
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """Counts of a rebuild."""

    logs: int
    ledgers: int
    runs: int
    replayed_groups: int
    """Journal groups that were not in the entry logs yet; they are now."""
    missing_logs: tuple[int, ...] = ()
    """Numbers of entry logs that the old index named and that do not exist: deleted since it was written, or lost."""


async def rebuild_index(host: Host, settings: BookieSettings, metadata: ClusterMetadata, *, lost_accepted: bool = False) -> RebuildReport:
    """Rebuild the index from the logs. The old one stays until the new one is complete.

    Args:
        lost_accepted: continue if a log that the old index knows is missing or too short. The bookie then denies entries that it held.

    Raises:
        ConfigError: the cluster knows no such bookie, or the settings are wrong. WrongCluster: a directory belongs to another bookie.
        EnvironmentFault: the bookie runs, or a disk cannot be used. CorruptionError, FormatError: a log or journal cannot be read, and
        the old index is restored; or a log is missing that the old index knows.
    """
    bookie_id = bookie_id_of(settings)
    if await metadata.cookies.get(bookie_id) is None:
        names = ", ".join(await metadata.cookies.bookie_ids()) or "none"
        raise ConfigError(f"the cluster knows no bookie {bookie_id}: correct bookie.bookie_id; there are: {names}")
    incarnation = await metadata.incarnations.get(bookie_id)
    directories = Directories(host.disk, settings)
    await directories.open(metadata, bookie_id, incarnation)
    try:
        identity = FileIdentity(bookie_id, metadata.instance_id, 0, incarnation.number)
        return await _rebuild(host, settings, identity, lost_accepted=lost_accepted)
    except OSError as error:
        raise EnvironmentFault(f"{error.filename or bookie_id}: {error.strerror or error}: repair the disk or its permissions") from error
    finally:
        directories.close()


async def _rebuild(host: Host, settings: BookieSettings, identity: FileIdentity, *, lost_accepted: bool) -> RebuildReport:
    path = join(join(settings.ledger_directories[0], CURRENT), INDEX_NAME)
    failures: list[OSError] = []
    workers = StorageWorkers.new(host)
    is_aside = False
    try:
        inspection = Inspection(host, settings, identity.bookie_id, identity.instance_id)
        await workers.on_writer(rollback_rebuild, host.disk, path, settings.index_cache_bytes)
        missing = await workers.on_writer(lambda: inspection.check_before_rebuild(lost_accepted=lost_accepted))
        is_aside = True
        back_up_index(host.disk, path)
        storage = await Storage.open(host, settings, identity, StorageCallbacks(on_failure=failures.append), workers)
    except BaseException:
        await workers.aclose()
        if is_aside:
            restore_index(host.disk, path)
        raise
    replayed = sum(journal.replayed.groups for journal in storage.journals)
    # Replayed entries belong in the index too, or the next start would replay them again.
    await storage.close(flush=True)
    if failures:
        raise failures[0]
    index = Index(host.disk, path, settings.index_cache_bytes)
    try:
        report = RebuildReport(len(index.log_sizes()), index.count("ledgers"), index.count("runs"), replayed, missing)
    finally:
        index.close()
    discard_backup(host.disk, path)
    return report
