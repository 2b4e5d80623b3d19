"""All workloads, by name."""

from __future__ import annotations

from triplicate_simulator.workloads.keyvalue.kv_workload import StoreWorkload
from triplicate_simulator.workloads.ledger.ledger_workload import LedgerWorkload
from triplicate_simulator.workloads.log.log_workload import LogWorkload
from triplicate_simulator.workloads.repair.repair_workload import RepairWorkload
from triplicate_simulator.workloads.sql.sql_workload import SqlWorkload
from triplicate_simulator.workloads.workload import Workload

_ALL: tuple[type[Workload], ...] = (LedgerWorkload, LogWorkload, SqlWorkload, RepairWorkload, StoreWorkload)
WORKLOADS: dict[str, type[Workload]] = {workload.name: workload for workload in _ALL}
