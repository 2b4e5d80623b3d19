"""The trash: metadata of deleted ledgers, kept for a while so that they can be brought back.

One node of our own for each, ``/triplicate/<INSTANCEID>/trash/<ledger id>``: JSON with ``v`` (1), ``deleted_ms``, ``period_s``,
``metadata`` (base64 of what BookKeeper's node held), ``version`` and ``created_ms`` (that node's). Bookies delete a ledger's entries only
when it has been missing for their own `trash_period_s`, so an undelete is allowed until nine tenths of the period are over: clocks differ,
and copying takes time.

The node of a ledger that comes back is as young as its return, and must not make the ledger look so: a bookie whose disks were replaced
before that may have held its entries. So an undelete leaves ``/triplicate/<INSTANCEID>/returned/<ledger id>``, JSON with ``v`` (1) and
``created_ms`` of the first node. It stays with the ledger, and goes when the ledger leaves the trash for good.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import BadVersion, ConnectionLost, FormatError, NodeExists, NoNode, NoSuchLedger
from triplicate.ledger import LedgerMetadata, decode_metadata, encode_metadata
from triplicate.metadata.core.own import returned_path, trash_path
from triplicate.metadata.core.tree import ANY_VERSION, Stat, Tree, TreeOperation
from triplicate.metadata.ledger_store import LedgerStore, Versioned
from triplicate.metadata.retries import Attempts, retried
from triplicate.runtime import Host

UNDELETE_SHARE = 0.9
EXPIRED_AT_ONCE = 200
"""So many nodes one round of `Trash.expire` looks at."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class TrashedLedger:
    """One deleted ledger."""

    ledger_id: int
    deleted_ms: int
    """Milliseconds since the epoch, by the clock of whoever deleted it."""
    period_s: float
    metadata: LedgerMetadata
    version: int
    """Of the node that was deleted."""
    created_ms: int = 0
    """When that node was made, by the store's clock; 0: a release deleted it that did not write this."""

    def undelete_until_ms(self) -> int:
        """Until when it can be brought back."""
        return self.deleted_ms + int(self.period_s * UNDELETE_SHARE * 1000)


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
    """Raises FormatError: not such a node, or of a newer release."""
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
            root: the cluster's own root.
        """
        self._tree = tree
        self._host = host
        self._root = root
        self._ledgers = ledgers
        self._looked_at = ""
        """The name of the last node that `expire` looked at."""

    async def delete(self, ledger_id: int, period_s: float, *, version: int | None = None, checks: Sequence[TreeOperation] = ()) -> None:
        """Delete a ledger's metadata, kept here first. A ledger that is not there counts as deleted. A period of 0 keeps nothing.

        Args:
            version: delete the ledger only at this version of its node; None at any.
            checks: operations of the transaction that deletes; the ledger stays where one of them fails, and what is kept here of it
                goes when its period is over.

        Raises:
            BadVersion: the node has another version, or a check failed.
            ConnectionLost: it may be deleted or not; it may be tried again.
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
                # Nobody here could bring it back, and it must be possible to get rid of it.
                await self._ledgers.delete(ledger_id, wanted, checks)
                return
            if version not in (None, found.version):
                raise BadVersion(f"ledger {ledger_id} has version {found.version}, expected {version}")
            await self._keep(TrashedLedger(ledger_id, self._now_ms(), period_s, found.value, found.version, found.created_ms))
            try:
                await self._ledgers.delete(ledger_id, found.version, checks)
            except BadVersion:
                if version is not None or checks:
                    raise
                continue  # Changed since it was read: what is kept must be what is deleted.
            return

    async def get(self, ledger_id: int) -> TrashedLedger | None:
        """A deleted ledger, or None when it is not here. Raises FormatError."""
        found = await self._read(ledger_id)
        return found[0] if found is not None else None

    async def ledger_ids(self) -> list[int]:
        """Ledgers that are here, ascending."""
        return [int(name) for name in await self._names()]

    async def undelete(self, ledger_id: int) -> Versioned:
        """Put a ledger's metadata back as it was.

        Raises:
            NoSuchLedger: it is not in the trash, or was deleted so long ago that bookies may be deleting its entries.
            LedgerExists: the id has been used again since.
        """
        found = await self._read(ledger_id)
        if found is None:
            raise _no_such(ledger_id, f"ledger {ledger_id} is not in the trash")
        trashed, stat = found
        late_ms = self._now_ms() - trashed.undelete_until_ms()
        if late_ms > 0:
            raise _no_such(
                ledger_id,
                f"ledger {ledger_id} could be brought back until {late_ms // 1000} s ago; by now its bookies may be deleting its entries",
            )
        await self._note_making(trashed)
        restored = await self._ledgers.restore(ledger_id, trashed.metadata, trashed.version)
        await self._remove(ledger_id, stat)
        return restored

    async def made_ms(self, ledger_id: int, found: Versioned | TrashedLedger) -> int:
        """When a ledger was first made, however often it was deleted and came back since, by the store's clock.

        Args:
            found: the ledger, as it was read.

        Returns:
            milliseconds since the epoch; 0 where it cannot be told, and the ledger may be as old as can be.
        """
        if found.version == 0:
            return found.created_ms  # Nothing comes back at this version.
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(returned_path(self._root, ledger_id)))
        except NoNode:
            return found.created_ms
        return min(found.created_ms, _decode_returned(data))

    async def expire(self, limit: int = EXPIRED_AT_ONCE, pages: int = 1) -> int:
        """Remove nodes whose period is over, going on where the call before left off; returns how many.

        Args:
            limit: so many nodes make a page.
            pages: so many pages are looked at, as long as all that stands on each is due.
        """
        names = await self._names()
        behind = [name for name in names if name > self._looked_at] or names
        removed = 0
        for start in range(0, min(len(behind), limit * pages), limit):
            all_due = True
            for name in behind[start : start + limit]:
                self._looked_at = name
                try:
                    found = await self._read(int(name))
                except FormatError:
                    continue  # Of a newer release, which will know.
                if found is None:
                    continue  # Another's round was here before.
                trashed, stat = found
                if self._now_ms() >= trashed.deleted_ms + trashed.period_s * 1000:
                    removed += await self._remove(trashed.ledger_id, stat)
                    await self._forget_making(trashed)
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
                # Ours whose answer got lost, another's who deletes it at this moment, or that of an earlier life of the ledger.
                await self._tree.set(path, data)

        while True:
            try:
                await retried(self._host, attempt)
            except NoNode:
                continue  # Removed between the two.
            return

    async def _note_making(self, trashed: TrashedLedger) -> None:
        """Before the ledger is there again, since whoever finds it must find this."""
        path, data = returned_path(self._root, trashed.ledger_id), _encode_returned(trashed.created_ms)
        try:
            await retried(self._host, lambda: self._tree.create(path, data, parents=True))
        except NodeExists:
            return  # Ours whose answer got lost, or that of an earlier return, which knows better.

    async def _forget_making(self, trashed: TrashedLedger) -> None:
        """A ledger has left the trash for good. One that came back, or was deleted again since, has not."""
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
        """Remove the node that was read. False: it is gone, or the ledger was deleted again since, which is another's to remove."""
        path, attempts = self._path(ledger_id), Attempts(self._host)
        while True:
            try:
                await self._tree.delete(path, read.version)
            except (NoNode, BadVersion):
                return False
            except ConnectionLost as error:
                await attempts.again(error)
                # It may have been removed all the same, and a node made since begins with the first version again.
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

    def _now_ms(self) -> int:
        return self._host.clock.wall_us() // 1000


def _encode_returned(created_ms: int) -> bytes:
    return json.dumps({"v": _VERSION, "created_ms": created_ms}, sort_keys=True, separators=(",", ":")).encode()


def _decode_returned(data: bytes) -> int:
    """0 where it cannot be understood."""
    try:
        fields = json.loads(data)
        return int(fields["created_ms"]) if fields["v"] == _VERSION else 0
    except (ValueError, KeyError, TypeError):
        return 0


def _no_such(ledger_id: int, text: str) -> NoSuchLedger:
    error = NoSuchLedger(text)
    error.ledger_id = ledger_id
    return error
