"""Triplicate's part of the tree, ``/triplicate/<INSTANCEID>``.

Nothing of Triplicate's is stored below BookKeeper's root, because BookKeeper's tools refuse nodes that they do not know.
The functions expect Triplicate's root of the cluster (`ClusterMetadata.own_root`) and return absolute paths. Create nodes with
``parents=True``.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from triplicate.errors import ArgumentError

OWN_ROOT = "/triplicate"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,254}", re.ASCII)


def own_root(instance_id: str) -> str:
    """Triplicate's root for a cluster."""
    return f"{OWN_ROOT}/{instance_id}"


def check_name(name: str, kind: str) -> str:
    """Return the name of a log, database or store if it is valid: 1 to 255 letters, digits, ``_``, ``-``, ``.``.

    Raises:
        ArgumentError: the name is not valid, or begins with ``.`` or ``-``.
    """
    if not _NAME.fullmatch(name):
        allowed = "1 to 255 letters, digits, '_', '-' and '.', beginning with a letter, digit or '_'"
        raise ArgumentError(f"{name!r} cannot name a {kind}: {allowed}")
    return name


def encode_name(text: str) -> str:
    """Percent-encode a text (an application's name) for use as a node's name.

    Raises:
        ArgumentError: the text is empty.
    """
    if not text:
        raise ArgumentError("an empty name cannot be stored")
    encoded = quote(text, safe="")
    return encoded.replace(".", "%2E") if encoded.strip(".") == "" else encoded


def decode_name(name: str) -> str:
    """Decode a name encoded by `encode_name`."""
    return unquote(name)


def logs_path(root: str) -> str:
    """Children: the names of all logs."""
    return f"{root}/logs"


def log_path(root: str, log: str) -> str:
    """The head of a log."""
    return f"{root}/logs/{check_name(log, 'log')}"


def identities_path(path: str) -> str:
    """Its one child is named after the identity of the node at `path`. See `metadata.node_identity`."""
    return f"{path}/id"


def identity_path(path: str, identity: str) -> str:
    """There as long as the node of this identity is."""
    return f"{identities_path(path)}/{identity}"


def pages_path(root: str, log: str) -> str:
    """Children: the pages of a log's older segments."""
    return f"{log_path(root, log)}/pages"


def page_path(root: str, log: str, sequence: int) -> str:
    """One page. The number is padded, so names sort in numeric order."""
    return f"{pages_path(root, log)}/{sequence:010d}"


def publishers_path(root: str, log: str) -> str:
    """Children: the applications that have published to a log, percent-encoded."""
    return f"{log_path(root, log)}/publishers"


def publisher_path(root: str, log: str, application: str) -> str:
    """The last batch that an application published to a log."""
    return f"{publishers_path(root, log)}/{encode_name(application)}"


def requests_path(root: str, log: str) -> str:
    """Children: the requests of publishers to the writer of a log; ephemeral."""
    return f"{log_path(root, log)}/requests"


def snapshots_path(root: str, log: str) -> str:
    """The list of a log's snapshots."""
    return f"{log_path(root, log)}/snapshots"


def forgotten_path(root: str, log: str) -> str:
    """The publishers of a log whose own nodes were deleted, with their last batches."""
    return f"{log_path(root, log)}/forgotten"


def producers_path(root: str, log: str) -> str:
    """The table of a log's producers."""
    return f"{log_path(root, log)}/producers"


def consumers_path(root: str, log: str) -> str:
    """Children: the named consumers of a log, percent-encoded."""
    return f"{root}/subscriptions/{check_name(log, 'log')}"


def consumer_path(root: str, log: str, consumer: str) -> str:
    """The saved position of a named consumer."""
    return f"{consumers_path(root, log)}/{encode_name(consumer)}"


def holders_path(root: str, log: str) -> str:
    """Children: the tokens of the processes that hold the named consumers of a log, or have reset them."""
    return f"{log_path(root, log)}/holders"


def holder_path(root: str, log: str, token: str) -> str:
    """There as long as the process of this token may save the position of its consumer."""
    return f"{holders_path(root, log)}/{encode_name(token)}"


def clock_path(root: str) -> str:
    """A node written to read the clock of the metadata store: its ``mtime`` is the store's time."""
    return f"{root}/clock"


def janitor_path(root: str) -> str:
    """Changed by each process that begins a round of the janitor."""
    return f"{root}/janitor"


def databases_path(root: str) -> str:
    """Children: the names of all databases."""
    return f"{root}/databases"


def database_path(root: str, database: str) -> str:
    """One database."""
    return f"{root}/databases/{check_name(database, 'database')}"


def dropped_path(root: str) -> str:
    """Children: the identities of dropped databases whose logs still exist."""
    return f"{root}/dropped"


def dropped_database_path(root: str, identity: bytes) -> str:
    """The tombstone of one database."""
    return f"{root}/dropped/{identity.hex()}"


def drops_path(root: str) -> str:
    """Children: the identities of the drops of databases that have tombstones."""
    return f"{root}/drops"


def drop_path(root: str, drop: str) -> str:
    """There as long as the tombstone of one drop is."""
    return f"{root}/drops/{drop}"


def backups_path(root: str, identity: bytes) -> str:
    """The records of the backups of one database."""
    return f"{root}/backups/{identity.hex()}"


def stores_path(root: str) -> str:
    """Children: the names of all key-value stores."""
    return f"{root}/stores"


def store_path(root: str, store: str) -> str:
    """One key-value store."""
    return f"{root}/stores/{check_name(store, 'store')}"


def nodes_path(root: str) -> str:
    """Children: the registrations of running database nodes."""
    return f"{root}/nodes"


def node_path(root: str, node_id: str) -> str:
    """The registration of a running database node; ephemeral."""
    return f"{nodes_path(root)}/{encode_name(node_id)}"


def placement_path(root: str) -> str:
    """Changed with each change of the placement of databases, so that nodes look at it again. Its version orders such changes."""
    return f"{root}/placement"


def placed_nodes_path(root: str) -> str:
    """Children: all database nodes that the cluster has had, also those that do not run."""
    return f"{root}/placed-nodes"


def placed_node_path(root: str, node_id: str) -> str:
    """The weight and the state of a database node."""
    return f"{placed_nodes_path(root)}/{encode_name(node_id)}"


def balancer_path(root: str) -> str:
    """The node that carries the placement of databases out; ephemeral."""
    return f"{root}/balancer"


def incarnation_path(root: str, bookie_id: str) -> str:
    """The number of times a bookie's disks were replaced."""
    return f"{root}/incarnations/{bookie_id}"


def read_only_requests_path(root: str) -> str:
    """Children: the bookies that operators have requested to be read-only."""
    return f"{root}/readonly"


def read_only_request_path(root: str, bookie_id: str) -> str:
    """The request that a bookie be read-only."""
    return f"{read_only_requests_path(root)}/{bookie_id}"


def frozen_ensembles_path(root: str) -> str:
    """The freeze of ensemble changes."""
    return f"{root}/frozen-ensembles"


def upkeep_requests_path(root: str, bookie_id: str) -> str:
    """Children: requests that a bookie collect garbage, compact or flush; ephemeral."""
    return f"{root}/upkeep/{bookie_id}"


def racks_path(root: str) -> str:
    """The table of network locations."""
    return f"{root}/racks"


def damaged_copies_path(root: str) -> str:
    """Children: the ledgers of which copies are known to be damaged."""
    return f"{root}/damaged"


def damaged_ledger_path(root: str, ledger_id: int) -> str:
    """The damaged copies of one ledger."""
    return f"{damaged_copies_path(root)}/{ledger_id:019d}"


def trash_path(root: str, ledger_id: int) -> str:
    """Metadata of a deleted ledger, kept for undelete."""
    return f"{root}/trash/{ledger_id:019d}"


def returned_path(root: str, ledger_id: int) -> str:
    """The first creation time of a ledger that was deleted and undeleted."""
    return f"{root}/returned/{ledger_id:019d}"


def repair_notes_path(root: str) -> str:
    """Children: the marked ledgers whose last repair did not end well."""
    return f"{root}/repairs"


def repair_note_path(root: str, ledger_id: int) -> str:
    """Why the last repair of a marked ledger did not end well."""
    return f"{repair_notes_path(root)}/{ledger_id:019d}"


def repair_progress_path(root: str, ledger_id: int) -> str:
    """How far the repair of a locked ledger is."""
    return f"{root}/progress/{ledger_id:019d}"


def machine_path(root: str, bookie_id: str) -> str:
    """The machine of a bookie."""
    return f"{root}/machines/{bookie_id}"


def absences_path(root: str) -> str:
    """How long lost bookies were seen absent."""
    return f"{root}/absences"
