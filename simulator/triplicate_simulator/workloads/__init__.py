"""The plays: what runs in the simulated cluster, each a kind of scenario of its own."""

from triplicate_simulator.workloads.ledger.ledger_load import LedgerLoad
from triplicate_simulator.workloads.ledger.ledger_workload import LedgerWorkload
from triplicate_simulator.workloads.log.log_workload import LogWorkload
from triplicate_simulator.workloads.sql.sql_workload import SqlWorkload
from triplicate_simulator.workloads.workload import Workload

WORKLOADS: dict[str, type[Workload]] = {play.name: play for play in (LedgerWorkload, LogWorkload, SqlWorkload)}

__all__ = ["WORKLOADS", "LedgerLoad", "LedgerWorkload", "LogWorkload", "SqlWorkload", "Workload"]
