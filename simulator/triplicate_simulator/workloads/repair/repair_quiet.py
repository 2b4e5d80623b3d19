"""Ensembles that are chosen in the end, when nothing is wrong: preferred racks and regions must be kept then as well."""

from __future__ import annotations

import asyncio

from triplicate.client import Client
from triplicate.errors import BookieError, EnvironmentFault, LedgerError, MetadataError
from triplicate_simulator.checkers.domain_rules import EnsembleChosen
from triplicate_simulator.workloads.ledger.ledger_model import PASSWORD
from triplicate_simulator.workloads.repair.domain_model import domains_of
from triplicate_simulator.workloads.repair.repair_load import DOMAINS_LEAST, MACHINES, RACKS
from triplicate_simulator.workloads.repair.repair_model import RepairModel

LEDGERS = 4


class QuietEnsembles:
    """Creates a few ledgers and notes their bookies."""

    def __init__(self, model: RepairModel) -> None:
        self._model = model
        self._done = 0

    async def __call__(self, client: Client) -> None:
        while self._done < LEDGERS:
            try:
                await self._choose(client)
            except (MetadataError, BookieError, LedgerError, EnvironmentFault) as error:
                self._model.context.count_unknown(error)
                await asyncio.sleep(0.5)
            else:
                self._done += 1

    async def _choose(self, client: Client) -> None:
        load, context = self._model.load, self._model.context
        writer = await client.create(
            ensemble_size=load.ensemble_size,
            write_quorum=load.write_quorum,
            ack_quorum=load.ack_quorum,
            digest_type=self._model.digest,
            password=PASSWORD,
        )
        ensemble = writer.metadata.last_segment.ensemble
        await writer.close()
        racks, regions = domains_of(ensemble, load.write_quorum)
        wanted = self._wanted()
        context.history.add(EnsembleChosen(context.time(), writer.ledger_id, ensemble, racks, regions, *wanted))

    def _wanted(self) -> tuple[int, int]:
        """The numbers of racks and regions that the remaining machines allow. Two copies of each entry on three bookies in a ring need
        three racks, or cannot be in two regions each."""
        load, cluster = self._model.load, self._model.context.cluster
        locations = {RACKS[MACHINES[name]] for name, node in cluster.bookies.items() if node.serves}
        regions = {location.split("/")[1] for location in locations}
        if load.write_quorum < load.ensemble_size:
            return (DOMAINS_LEAST if len(locations) > DOMAINS_LEAST and load.placement == "rack-aware" else 1), 1
        is_regional = load.placement == "region-aware"
        return min(DOMAINS_LEAST, len(locations)), min(DOMAINS_LEAST, len(regions)) if is_regional else 1
