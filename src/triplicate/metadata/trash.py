"""The trash: metadata of deleted ledgers, kept for a time so that they can be undeleted.

Each deleted ledger has a node ``/triplicate/<INSTANCEID>/trash/<ledger id>``: JSON with ``v`` (1), ``deleted_ms``, ``period_s``,
``metadata`` (base64 of the BookKeeper node's data), ``version`` and ``created_ms`` (of that node). Bookies delete the entries of a ledger
only after it has been missing for their `trash_period_s`. An undelete is allowed during the first nine tenths of the period, because clocks
differ and copying takes time.

The node of an undeleted ledger is new, but the ledger must not look new: a bookie whose disks were replaced before the undelete may have
held its entries. So an undelete creates ``/triplicate/<INSTANCEID>/returned/<ledger id>``, JSON with ``v`` (1) and the ``created_ms`` of
the first node. This node stays with the ledger, and is deleted when the ledger leaves the trash for good.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triplicate.errors import BadVersion, ConnectionLost, FormatError, MetadataError, NodeExists, NoNode, NoSuchLedger
from triplicate.ledger import LedgerMetadata, decode_metadata, encode_metadata
from triplicate.metadata.core.own_paths import returned_path, trash_path
from triplicate.metadata.core.tree import ANY_VERSION, CheckVersion, Stat, Tree, TreeOperation
from triplicate.metadata.ledger_store import LedgerStore, Versioned
from triplicate.metadata.retries import Attempts, retried
from triplicate.metadata.store_time import store_time_ms
from triplicate.runtime import Host

UNDELETE_SHARE = 0.9
UNDELETE_RACES_MAX = 100
"""How many times others may change the node of a ledger in the trash during one undelete."""
EXPIRED_AT_ONCE = 200
"""Maximum number of nodes that one round of `Trash.expire` reads."""
CLOCKS_APART_MAX_MS = 300_000
"""Between the clocks of this process and of the store. Beyond it the store's is taken for the right one."""
MEASURED_S = 60.0
"""For this time the store's clock is not read again."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class TrashedLedger:
    """One deleted ledger."""

    ledger_id: int
    deleted_ms: int
    """Milliseconds since the epoch, see `Trash.now_ms`."""
    period_s: float
    metadata: LedgerMetadata
    """As deleted; with other bookies if copies were moved since."""
    version: int
    """Version of the deleted node, and one more for each change since."""
    created_ms: int = 0
    """Creation time of that node in ms since the epoch, by the store's clock; 0 if an older release deleted the ledger."""

    def undelete_until_ms(self) -> int:
        """End of the time in which the ledger can be undeleted, in ms since the epoch."""
        return self.deleted_ms + int(self.period_s * UNDELETE_SHARE * 1000)

    def ends_ms(self) -> int:
        """End of the period, in ms since the epoch. The time for an undelete is over by then, also where clocks differ."""
        return self.deleted_ms + int(self.period_s * 1000)


def encode_trashed(value: TrashedLedger) -> bytes:
    """The node's bytes."""
    fields = {
        "v": _VERSION,
        "deleted_ms": value.deleted_ms,
        "period_s": value.period_s,
        "metadata": base64.b64encode(encode_metadata(value.metadata)).decode("ascii"),
        "version": value.version,
        "created_ms": value.created_ms,
    }
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_trashed(ledger_id: int, data: bytes) -> TrashedLedger:
    """Raises FormatError: the data is not a trashed ledger, or was written by a newer release."""
    try:
        fields = json.loads(data)
        if fields["v"] != _VERSION:
            raise FormatError(f"ledger {ledger_id} in the trash: format {fields['v']}, this release knows {_VERSION}: use a newer one")
        metadata = decode_metadata(base64.b64decode(fields["metadata"], validate=True))
        created_ms = int(fields.get("created_ms", 0))
        return TrashedLedger(ledger_id, int(fields["deleted_ms"]), float(fields["period_s"]), metadata, int(fields["version"]), created_ms)
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"ledger {ledger_id} in the trash cannot be understood: {error!r}") from error


class Trash:
    """The deleted ledgers of a cluster."""

    def __init__(self, tree: Tree, host: Host, root: str, ledgers: LedgerStore) -> None:
        """
        Args:
            root: Triplicate's root of the cluster.
        """
        self._tree = tree
        self._host = host
        self._root = root
        self._ledgers = ledgers
        self._last_read = ""
        """Name of the last node that `expire` read."""
        self._measured_s: float | None = None
        """When the store's clock was read last, by the clock that never goes back; None before."""
        self._store_ms = 0
        """The time of the store then."""

    async def delete(self, ledger_id: int, period_s: float, *, version: int | None = None, checks: Sequence[TreeOperation] = ()) -> None:
        """Delete a ledger's metadata after storing it in the trash. A missing ledger counts as deleted. A period of 0 stores nothing.

        Args:
            version: delete the ledger only at this version of its node; None at any.
            checks: operations of the deleting transaction. If one fails, the ledger stays, and its copy in the trash expires after the
                period.

        Raises:
            BadVersion: the node has another version, or a check failed.
            ConnectionLost: the ledger may or may not be deleted. The call can be repeated.
        """
        wanted = ANY_VERSION if version is None else version
        if period_s <= 0:
            await self._ledgers.delete(ledger_id, wanted, checks)
            return
        while True:
            try:
                found = await self._ledgers.get(ledger_id)
            except NoSuchLedger:
                return
            except FormatError:
                # This release could not undelete it, and deletion must be possible.
                await self._ledgers.delete(ledger_id, wanted, checks)
                return
            if version not in (None, found.version):
                raise BadVersion(f"ledger {ledger_id} has version {found.version}, expected {version}")
            await self._keep(TrashedLedger(ledger_id, await self.now_ms(), period_s, found.value, found.version, found.created_ms))
            try:
                await self._ledgers.delete(ledger_id, found.version, checks)
            except BadVersion:
                if version is not None or checks:
                    raise
                continue  # Changed since it was read: the trash must hold the deleted state.
            return

    async def now_ms(self) -> int:
        """The time by which periods begin and end, in ms since the epoch: of this process's clock, or of the store's if they are far apart.

        So a process whose clock is wrong neither ends the periods of others nor begins one that is over. Raises MetadataError.
        """
        clock = self._host.clock
        if self._measured_s is None or clock.monotonic() - self._measured_s > MEASURED_S:
            self._store_ms = await retried(self._host, lambda: store_time_ms(self._tree, self._root))
            self._measured_s = clock.monotonic()
        store_ms = self._store_ms + int((clock.monotonic() - self._measured_s) * 1000)
        local_ms = clock.wall_us() // 1000
        return local_ms if abs(local_ms - store_ms) <= CLOCKS_APART_MAX_MS else store_ms

    async def get(self, ledger_id: int) -> TrashedLedger | None:
        """A deleted ledger, or None if it is not in the trash. Raises FormatError."""
        found = await self._read(ledger_id)
        return found[0] if found is not None else None

    async def ledger_ids(self) -> list[int]:
        """Ids of the ledgers in the trash, ascending."""
        return [int(name) for name in await self._names()]

    async def undelete(self, ledger_id: int) -> Versioned:
        """Restore a ledger's metadata.

        Raises:
            NoSuchLedger: the ledger is not in the trash, or was deleted so long ago that bookies may be deleting its entries.
            LedgerExists: the id has been used again.
        """
        for _ in range(UNDELETE_RACES_MAX):
            found = await self._read(ledger_id)
            if found is None:
                raise _no_such(ledger_id, f"ledger {ledger_id} is not in the trash")
            try:
                return await self._undelete(*found)
            except BadVersion:
                continue  # Its copies were moved, or it was deleted once more, since it was read.
        raise MetadataError(f"others changed ledger {ledger_id} in the trash {UNDELETE_RACES_MAX} times while it was being undeleted")

    async def _undelete(self, trashed: TrashedLedger, stat: Stat) -> Versioned:
        """Raises BadVersion: the node in the trash has changed. Others as `undelete`."""
        ledger_id = trashed.ledger_id
        late_ms = await self.now_ms() - trashed.undelete_until_ms()
        if late_ms > 0:
            raise _no_such(
                ledger_id,
                f"ledger {ledger_id} could be undeleted until {late_ms // 1000} s ago; by now its bookies may be deleting its entries",
            )
        await self._record_creation(trashed)
        guard = CheckVersion(self._path(ledger_id), stat.version)
        restored = await self._ledgers.restore(ledger_id, trashed.metadata, trashed.version, guard)
        await self._remove(ledger_id, stat)
        return restored

    async def update(self, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned:
        """Replace the metadata of a ledger in the trash, as `LedgerStore.update` does with that of a ledger: an undelete restores them.

        Args:
            version: of the ledger, as read. The next one is stored.

        Raises:
            BadVersion: another process changed it. NoSuchLedger: it is not in the trash any more. FormatError: a newer release wrote it.
        """
        changed, attempts = Versioned(metadata, version + 1), Attempts(self._host)
        uncertain = False
        while True:
            found = await self._read(ledger_id)
            if found is None:
                raise _no_such(ledger_id, f"ledger {ledger_id} is not in the trash any more")
            trashed, stat = found
            if uncertain and (trashed.version, trashed.metadata) == (changed.version, metadata):
                return changed
            if trashed.version != version:
                raise BadVersion(f"ledger {ledger_id} in the trash has version {trashed.version}, expected {version}")
            data = encode_trashed(replace(trashed, metadata=metadata, version=changed.version))
            try:
                await self._tree.set(self._path(ledger_id), data, stat.version)
            except NoNode:
                continue  # It has left the trash: the next reading finds that.
            except ConnectionLost as error:
                uncertain = True
                await attempts.again(error)
            else:
                return changed

    async def first_created_ms(self, ledger_id: int, found: Versioned | TrashedLedger) -> int:
        """The first creation time of a ledger, however often it was deleted and undeleted since, by the store's clock.

        Args:
            found: the ledger as read.

        Returns:
            milliseconds since the epoch; 0 if unknown, in which case the ledger may have any age.
        """
        if found.version == 0:
            return found.created_ms  # An undeleted ledger has a greater version.
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(returned_path(self._root, ledger_id)))
        except NoNode:
            return found.created_ms
        return min(found.created_ms, _decode_returned(data))

    async def expire(self, limit: int = EXPIRED_AT_ONCE, pages: int = 1) -> int:
        """Remove nodes whose period is over, continuing where the previous call stopped. Returns the number removed.

        Args:
            limit: nodes per page.
            pages: maximum number of pages. The call stops after a page with a node that is not due.
        """
        names = await self._names()
        behind = [name for name in names if name > self._last_read] or names
        removed, now_ms = 0, await self.now_ms() if behind else 0
        for start in range(0, min(len(behind), limit * pages), limit):
            all_due = True
            for name in behind[start : start + limit]:
                self._last_read = name
                try:
                    found = await self._read(int(name))
                except FormatError:
                    continue  # Written by a newer release, which can decode it.
                if found is None:
                    continue  # Another's round was here before.
                trashed, stat = found
                if now_ms >= trashed.ends_ms():
                    removed += await self._remove(trashed.ledger_id, stat)
                    await self._remove_creation_record(trashed)
                else:
                    all_due = False
            if not all_due:
                break
        return removed

    async def _read(self, ledger_id: int) -> tuple[TrashedLedger, Stat] | None:
        """Raises FormatError."""
        try:
            data, stat = await retried(self._host, lambda: self._tree.get(self._path(ledger_id)))
        except NoNode:
            return None
        return decode_trashed(ledger_id, data), stat

    async def _keep(self, value: TrashedLedger) -> None:
        path, data = self._path(value.ledger_id), encode_trashed(value)

        async def attempt() -> None:
            try:
                await self._tree.create(path, data, parents=True)
            except NodeExists:
                # From an attempt whose answer was lost, a concurrent deletion, or an earlier deletion of the ledger.
                await self._tree.set(path, data)

        while True:
            try:
                await retried(self._host, attempt)
            except NoNode:
                continue  # Removed between the two.
            return

    async def _record_creation(self, trashed: TrashedLedger) -> None:
        """Called before the ledger exists again: a reader of the ledger must find this node."""
        path, data = returned_path(self._root, trashed.ledger_id), _encode_returned(trashed.created_ms)
        try:
            await retried(self._host, lambda: self._tree.create(path, data, parents=True))
        except NodeExists:
            return  # From an attempt whose answer was lost, or from an earlier undelete, whose time is the right one.

    async def _remove_creation_record(self, trashed: TrashedLedger) -> None:
        """Called when a ledger leaves the trash. Nothing is deleted if the ledger was undeleted or deleted again."""
        path = returned_path(self._root, trashed.ledger_id)
        if trashed.version == 0 or await retried(self._host, lambda: self._tree.exists(path)) is None:
            return
        await self._ledgers.refresh()
        if await self._read(trashed.ledger_id) is not None or await self._ledgers.exists(trashed.ledger_id):
            return
        try:
            await retried(self._host, lambda: self._tree.delete(path))
        except NoNode:
            return  # Another's round was here before.

    async def _remove(self, ledger_id: int, read: Stat) -> bool:
        """Remove the node as read. Returns False if it is gone, or if the ledger was deleted again since."""
        path, attempts = self._path(ledger_id), Attempts(self._host)
        while True:
            try:
                await self._tree.delete(path, read.version)
            except (NoNode, BadVersion):
                return False
            except ConnectionLost as error:
                await attempts.again(error)
                # The deletion may have been applied, and a node created since starts at the same version.
                if await retried(self._host, lambda: self._tree.exists(path)) != read:
                    return False
            else:
                return True

    async def _names(self) -> list[str]:
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(f"{self._root}/trash"))
        except NoNode:
            return []
        return sorted(name for name in names if name.isdecimal())

    def _path(self, ledger_id: int) -> str:
        return trash_path(self._root, ledger_id)


def _encode_returned(created_ms: int) -> bytes:
    return json.dumps({"v": _VERSION, "created_ms": created_ms}, sort_keys=True, separators=(",", ":")).encode()


def _decode_returned(data: bytes) -> int:
    """0 if the data cannot be decoded."""
    try:
        fields = json.loads(data)
        return int(fields["created_ms"]) if fields["v"] == _VERSION else 0
    except (ValueError, KeyError, TypeError):
        return 0


def _no_such(ledger_id: int, text: str) -> NoSuchLedger:
    error = NoSuchLedger(text)
    error.ledger_id = ledger_id
    return error


class TrashedLedgerStore:
    """The metadata of the ledgers in the trash, with the calls of `LedgerStore` by which a repair moves copies."""

    def __init__(self, trash: Trash, ledgers: LedgerStore) -> None:
        self._trash = trash
        self._ledgers = ledgers

    async def get(self, ledger_id: int) -> Versioned:
        """Raises NoSuchLedger: it is not in the trash. FormatError."""
        trashed = await self._trash.get(ledger_id)
        if trashed is None:
            raise _no_such(ledger_id, f"ledger {ledger_id} is not in the trash")
        return Versioned(trashed.metadata, trashed.version, trashed.created_ms)

    async def update(self, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned:
        """See `Trash.update`."""
        return await self._trash.update(ledger_id, metadata, version)

    async def refresh(self) -> None:
        """See `LedgerStore.refresh`."""
        await self._ledgers.refresh()
