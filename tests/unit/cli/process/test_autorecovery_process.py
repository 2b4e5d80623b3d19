"""Auto-recovery in the process of a bookie that requires TLS."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.certificates import CertificateFolder
from tests.unit.autorecovery.recovery_rig import repair, write_ledger
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import real_cluster
from tests.waiting import eventually
from triplicate.autorecovery import RepairOutcome
from triplicate.bookie import Bookie
from triplicate.cli.process.autorecovery_process import delete_unneeded_copies
from triplicate.config import AutorecoverySettings, ClientSettings, Configuration, SecuritySettings
from triplicate.runtime import Metrics

CLIENT = ClientSettings(bookie_tls="required", add_timeout_s=10.0, connect_timeout_s=10.0)
DELETED = "bookie_unneeded_copies_deleted_total 1.0"


def test_unneeded_copies_are_deleted_where_bookies_require_tls(tmp_path: Path) -> None:
    """The client of the task had no certificates, so no bookie listed its entries, and the copies stayed for ever."""

    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        servers, clients, metrics = folder.settings("bookie"), folder.client_settings(), Metrics()
        async with real_cluster("abcd", security=servers, tls="required") as cluster, cluster.client(CLIENT, clients) as client:
            ledger_id = await write_ledger(client, 10, sizes=(3, 3, 3))
            left = (await client.metadata_of(ledger_id)).segments[0].ensemble[0]
            settings = cluster.bookies[left].settings
            await cluster.bookies[left].stop()
            assert (await repair(client, ledger_id, left)).outcome is RepairOutcome.REPAIRED
            bookie = cluster.bookies[left] = await Bookie.start(cluster.host, settings, cluster.metadata, security=servers)
            await bookie.storage.flush()
            prompt = AutorecoverySettings(unneeded_copies_wait_s=0.05)
            configuration = Configuration({AutorecoverySettings: prompt, ClientSettings: CLIENT, SecuritySettings: clients}, {})
            rounds = delete_unneeded_copies(cluster.host, cluster.metadata, configuration, metrics, left, bookie.storage)
            task = asyncio.create_task(rounds)
            try:
                await eventually(lambda: task.done() or DELETED in metrics.expose().decode())
                assert not task.done()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await bookie.stop()

    run(main())
