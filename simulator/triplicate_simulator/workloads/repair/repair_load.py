"""The load of the repair workload: that of ledgers, with the processes that make lost copies again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from triplicate.config import AutorecoverySettings, ClientSettings
from triplicate_simulator.workloads.ledger.ledger_load import LedgerLoad, smaller_loads

KIB = 1024
MACHINES = {f"bookie-{number}": f"machine-{machine}" for number, machine in enumerate((1, 1, 2, 2, 3, 3, 4, 5), 1)}
"""The machine of each bookie: three with two bookies, two with one."""
RACKS = {
    "machine-1": "/east/first",
    "machine-2": "/east/second",
    "machine-3": "/west/third",
    "machine-4": "/east/first",
    "machine-5": "/west/third",
}
"""The network location of each machine. Any three machines, of which an ensemble needs as many, are in two racks or more."""
DOMAINS_LEAST = 2
"""Least number of racks, and of regions, for the copies of an entry where a policy asks for them."""
ACK_RACKS_SHARE = 0.6
"""Share of the rack-aware runs without stripes whose entries are acknowledged in two racks."""
RIVAL_SHARE = 0.5
DECOMMISSIONS_S = (5.0, 15.0, 30.0)
"""Times at which a decommission begins."""
LOG_COPIES_S = 3
"""Interval at which the copies of a log's segments are raised."""
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
    refill_pause_s: float = 4.0
    """Pause between two refills by hand of bookies with replaced disks."""
    log_writers: int = 0
    """Writers that compete for a log; 0: there is no log."""
    log_roll_bytes: int = 4 * KIB
    placement: str = "uniform"
    """The policy of placement of all clients."""
    enforced: bool = False
    """Whether the least number of racks is enforced, or only preferred."""
    location_table: bool = False
    """Whether the metadata state the locations of bookies, in place of their registrations."""
    ack_racks: int = 1
    """Least number of racks in which an entry is acknowledged, under the policy rack-aware; 1: any ack quorum."""
    unneeded_wait_s: float = field(default=0.0, repr=False)
    """Interval at which the bookies look for copies that no ledger needs; 0: never. Not in the text from which other values are drawn."""
    rival: bool = field(default=False, repr=False)
    """Whether another decommission begins beside the first, and must be refused."""

    @property
    def uses_locations(self) -> bool:
        """Whether racks matter."""
        return self.placement != "uniform"

    def settings(self, given: ClientSettings) -> ClientSettings:
        found = super().settings(given)
        return replace(
            found,
            placement_policy=self.placement,
            placement_min_racks=DOMAINS_LEAST,
            placement_min_regions=DOMAINS_LEAST,
            placement_enforced=self.enforced,
            placement_min_ack_domains=self.ack_racks,
        )

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
            log_copies_interval_s=LOG_COPIES_S,
        )


def draw_load(rng: random.Random) -> RepairLoad:
    """Draw a load."""
    # Three machines are enough for each of them, so that several may be lost for good.
    sizes = rng.choice([(3, 3, 2), (3, 3, 2), (3, 2, 2)])
    load = RepairLoad(
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
        recovery_delay_s=rng.choice([1.0, 30.0, 30.0]),
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
    )
    load = draw_unneeded(draw_domains(draw_log(random.Random(f"log of {load!r}"), load)))
    return replace(load, rival=bool(load.decommission) and random.Random(f"rival of {load!r}").random() < RIVAL_SHARE)


def draw_log(rng: random.Random, load: RepairLoad) -> RepairLoad:
    """Draw the log, from a random stream of its own."""
    return replace(load, log_writers=rng.choice([0, 0, 1, 2]), log_roll_bytes=rng.choice([KIB, 4 * KIB]))


def draw_domains(load: RepairLoad) -> RepairLoad:
    """Draw the rules of placement, from a random stream of their own."""
    rng = random.Random(f"domains of {load!r}")
    placement = rng.choice(["uniform", "rack-aware", "rack-aware", "region-aware"])
    # Three machines may have no three racks, nor two regions: where these would be needed, they are only preferred.
    enforced = rng.random() < 0.5 and placement == "rack-aware" and load.write_quorum == 3
    table = rng.random() < 0.5 and placement != "uniform"
    # Stripes of two copies on three bookies need three racks, of which one may be lost.
    spans_racks = rng.random() < ACK_RACKS_SHARE and placement == "rack-aware" and load.ensemble_size == load.write_quorum
    return replace(load, placement=placement, enforced=enforced, location_table=table, ack_racks=2 if spans_racks else 1)


def draw_unneeded(load: RepairLoad) -> RepairLoad:
    """Draw whether bookies delete their unneeded copies, from a random stream of its own."""
    return replace(load, unneeded_wait_s=random.Random(f"unneeded copies of {load!r}").choice([0.0, 3.0, 6.0]))


def smaller(load: RepairLoad) -> Iterator[RepairLoad]:
    """Smaller loads, the boldest first."""
    if load.decommission:
        yield replace(load, decommission="", rival=False)
    if load.rival:
        yield replace(load, rival=False)
    if load.ack_racks > 1:
        yield replace(load, ack_racks=1)
    if load.daemons:
        yield replace(load, daemons=False)
    if load.unneeded_wait_s:
        yield replace(load, unneeded_wait_s=0.0)
    if load.log_writers:
        yield replace(load, log_writers=load.log_writers - 1)
    if load.uses_locations:
        yield replace(load, placement="uniform", enforced=False, location_table=False, ack_racks=1)
    if load.workers > 1:
        yield replace(load, workers=1)
    if load.passes_pause_s < 1000.0:
        yield replace(load, passes_pause_s=1000.0)
    for less in smaller_loads(load):
        assert isinstance(less, RepairLoad), "a smaller load is of the same type"
        yield less
