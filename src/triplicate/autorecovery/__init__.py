"""Auto-recovery: ledgers whose bookies are lost get their copies again, on other bookies."""

from triplicate.autorecovery.auditor import Auditor
from triplicate.autorecovery.auditor_metrics import AuditorMetrics
from triplicate.autorecovery.bookie_refill import RefillReport, refill_bookie, refill_bookies_in_limbo
from triplicate.autorecovery.copy_pace import CopyPace
from triplicate.autorecovery.core.disk_room import DiskRoom
from triplicate.autorecovery.core.ledger_copies import CopiesOnBookie, LedgerCopies
from triplicate.autorecovery.core.needed_copies import names_any
from triplicate.autorecovery.core.room_check import RefusedSegment
from triplicate.autorecovery.daemon import AutorecoveryDaemon
from triplicate.autorecovery.decommission import DecommissionReport, decommission_bookie
from triplicate.autorecovery.decommission_progress import DecommissionPhase, DecommissionProgress, Obstacle
from triplicate.autorecovery.ledger_audits import Audit, AuditFinding, AuditReport, LedgerAudits
from triplicate.autorecovery.ledger_check import LedgerChecker, mark_copies
from triplicate.autorecovery.ledger_mending import MendedLedger, mend_ledger
from triplicate.autorecovery.ledger_walk import WalkedLedger, walk_ledgers
from triplicate.autorecovery.misplaced_pass import MisplacedLedger, MisplacedReport, move_misplaced
from triplicate.autorecovery.recovery_pass import LedgerNeed, PassProgress, PassReport, recover_bookies
from triplicate.autorecovery.repair_tools import CopiesMade, HasLivingWriter, RepairOutcome
from triplicate.autorecovery.replication_loop import ReplicationLoop
from triplicate.autorecovery.unneeded_copies import LocalCopies, UnneededCopies, UnneededReport
from triplicate.autorecovery.worker import LedgerRepair, ReplicationWorker

__all__ = [
    "Audit",
    "AuditFinding",
    "AuditReport",
    "Auditor",
    "AuditorMetrics",
    "AutorecoveryDaemon",
    "CopiesMade",
    "CopiesOnBookie",
    "CopyPace",
    "DecommissionPhase",
    "DecommissionProgress",
    "DecommissionReport",
    "DiskRoom",
    "HasLivingWriter",
    "LedgerAudits",
    "LedgerChecker",
    "LedgerCopies",
    "LedgerNeed",
    "LedgerRepair",
    "LocalCopies",
    "MendedLedger",
    "MisplacedLedger",
    "MisplacedReport",
    "Obstacle",
    "PassProgress",
    "PassReport",
    "RefillReport",
    "RefusedSegment",
    "RepairOutcome",
    "ReplicationLoop",
    "ReplicationWorker",
    "UnneededCopies",
    "UnneededReport",
    "WalkedLedger",
    "decommission_bookie",
    "mark_copies",
    "mend_ledger",
    "move_misplaced",
    "names_any",
    "recover_bookies",
    "refill_bookie",
    "refill_bookies_in_limbo",
    "walk_ledgers",
]
