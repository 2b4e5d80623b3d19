"""The load of the repair workload: that of ledgers, with the processes that make lost copies again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

from triplicate.config import AutorecoverySettings, ClientSettings
from triplicate_simulator.workloads.ledger.ledger_load import LedgerLoad, smaller_loads

KIB = 1024
MACHINES = {f"bookie-{number}": f"machine-{machine}" for number, machine in enumerate((1, 1, 2, 2, 3, 3, 4, 5), 1)}
"""The machine of each bookie: three with two bookies, two with one."""
RACKS = {f"machine-{number}": f"/rack-{rack}" for number, rack in enumerate((1, 1, 2, 2, 3), 1)}
"""The rack of each machine. Any three machines are in two racks or more."""
RACKS_SHARE = 0.4
"""Share of the runs whose entries are acknowledged in two racks."""
DECOMMISSIONS_S = (5.0, 15.0, 30.0)
"""Times at which a decommission begins."""
SHARING = [name for name, machine in MACHINES.items() if list(MACHINES.values()).count(machine) > 1]
"""Bookies that share a machine, which keeps another one if they are taken out."""


@dataclass(frozen=True)
class RepairLoad(LedgerLoad):
    """One run's load."""

    workers: int = 2
    """Processes of replication workers."""
    grace_s: float = 3.0
    """Time without any change after which the writer of an open ledger is held to be gone."""
    bytes_per_s: int = 0
    """Rate of each worker's copies; 0: without limit."""
    window_copies: int = 100
    """Entries of one ledger that a worker copies at a time."""
    passes_pause_s: float = 6.0
    """Average pause between two passes by hand."""
    lost_after_s: float = 2.0
    """Absence of a bookie after which its ledgers are marked."""

    daemons: bool = False
    """Whether the workers are daemons, one of which is the auditor, in place of plain workers beside a program that marks ledgers."""
    decommission: str = "bookie-2"
    """The bookie that an operator takes out in order; empty for none."""
    decommission_at_s: float = 15.0
    scrub_interval_s: float = 6.0
    """Interval of the bookies' scrubbers."""

    ack_racks: int = 1
    """Least number of racks in which an entry is acknowledged; 1: any ack quorum, under the uniform policy."""

    def settings(self, given: ClientSettings) -> ClientSettings:
        settings = super().settings(given)
        if self.ack_racks <= 1:
            return settings
        return replace(settings, placement_policy="rack-aware", placement_min_ack_domains=self.ack_racks)

    def autorecovery(self) -> AutorecoverySettings:
        """The settings of workers and passes."""
        return AutorecoverySettings(
            bytes_per_s=self.bytes_per_s,
            open_ledger_grace_s=self.grace_s,
            ledgers_at_once=2,
            window_entries=self.window_copies,
            lost_bookie_delay_s=max(1, round(self.lost_after_s)),
            busy_share=1.0,
            bookies_check_interval_s=5,
            ledgers_check_interval_s=20,
            replicas_check_interval_s=12,
            placement_check_interval_s=20,
        )


def draw_load(rng: random.Random) -> RepairLoad:
    """Draw a load."""
    # Three machines are enough for each of them, so that several may be lost for good.
    sizes = rng.choice([(3, 3, 2), (3, 3, 2), (3, 2, 2)])
    return RepairLoad(
        writers=("plain",) * rng.choice([1, 2]),
        ensemble_size=sizes[0],
        write_quorum=sizes[1],
        ack_quorum=sizes[2],
        digest=rng.choice(["CRC32C", "CRC32C", "CRC32", "HMAC"]),
        wire=rng.choice(["v2", "v2", "v3", "mixed"]),
        entries=rng.choice([20, 80, 160]),
        pause_mean_s=rng.choice([0.5, 1.0]),
        burst=4,
        payload_high_bytes=rng.choice([100, 1000]),
        window_entries=rng.choice([1000, 10]),
        explicit_lac_s=rng.choice([0.0, 0.2]),
        delay_ensemble_change=rng.random() < 0.5,
        close_share=rng.choice([0.5, 0.8]),
        dormant_share=0.0,
        probe_pause_s=1.0,
        recoverers=1,
        recovery_delay_s=rng.choice([1.0, 15.0, 15.0]),
        zombie_share=rng.choice([0.0, 0.0, 0.2]),
        delete_share=rng.choice([0.0, 0.0, 0.3]),
        workers=rng.choice([2, 3]),
        grace_s=rng.choice([2.0, 4.0]),
        bytes_per_s=rng.choice([0, 20 * KIB, 100 * KIB]),
        window_copies=rng.choice([1, 10, 100]),
        passes_pause_s=rng.choice([4.0, 12.0]),
        lost_after_s=rng.choice([0.5, 2.0, 5.0]),
        daemons=rng.random() < 0.5,
        decommission=rng.choice(["", *SHARING, *SHARING]),
        decommission_at_s=rng.choice(DECOMMISSIONS_S),
        # Of a copy, so that everything else that a seed draws is as it was before this load existed. Stripes of two copies on three bookies
        # need three racks, of which one may be lost.
        ack_racks=2 if sizes[0] == sizes[1] and copy(rng).random() < RACKS_SHARE else 1,
    )


def smaller(load: RepairLoad) -> Iterator[RepairLoad]:
    """Smaller loads, the boldest first."""
    if load.decommission:
        yield replace(load, decommission="")
    if load.ack_racks > 1:
        yield replace(load, ack_racks=1)
    if load.daemons:
        yield replace(load, daemons=False)
    if load.workers > 1:
        yield replace(load, workers=1)
    if load.passes_pause_s < 1000.0:
        yield replace(load, passes_pause_s=1000.0)
    for less in smaller_loads(load):
        assert isinstance(less, RepairLoad), "a smaller load is of the same type"
        yield less
