"""The registrations of bookies: writable or read-only, with their addresses.

Source: BookKeeper `ZKRegistrationManager`, `ZKRegistrationClient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triplicate.errors import BadVersion, BookieUnavailable, ConnectionLost, FormatError, NodeExists, NoNode, SessionExpired
from triplicate.metadata.core.bookie_ids import check_bookie_id, is_bookie_id
from triplicate.metadata.core.known_addresses import KnownAddresses, Location
from triplicate.metadata.core.service_info import BookieServiceInfo, decode_service_info, encode_service_info
from triplicate.metadata.core.tree import SESSION_NOTICED_S, SESSION_TIMEOUT_S, CreateNode, DeleteNode, Tree, TreeOperation, Watch
from triplicate.metadata.drivers.watches import JoinedWatch
from triplicate.metadata.retries import Attempts, retried
from triplicate.metadata.session_nodes import delete_of_session, multi_in_session
from triplicate.runtime import Host, timeout_at

STALE_WAIT_S = SESSION_TIMEOUT_S + SESSION_NOTICED_S
"""Default wait until the registration of a bookie's previous run is gone."""

UNREGISTER_LIMIT_S = 3.0
"""Maximum time that a stopping bookie waits for the metadata store."""


@dataclass(frozen=True, slots=True)
class RegisteredBookies:
    """The registered bookies at one time.

    Args:
        writable: those that accept new ledgers, sorted by id.
        readonly: those that only serve reads, sorted by id.
        unreadable: the reason why no registration of a bookie can be decoded, by bookie. Such a bookie runs, perhaps with another release,
            and is not lost; its address is unknown.
    """

    writable: Mapping[str, BookieServiceInfo]
    readonly: Mapping[str, BookieServiceInfo]
    unreadable: Mapping[str, str]

    @property
    def infos(self) -> dict[str, BookieServiceInfo]:
        """The registrations that can be decoded."""
        return {**self.readonly, **self.writable}

    @property
    def names(self) -> tuple[str, ...]:
        """All registered bookies."""
        return tuple(sorted({**self.readonly, **self.writable, **self.unreadable}))

    def __contains__(self, bookie_id: object) -> bool:
        return bookie_id in self.writable or bookie_id in self.readonly or bookie_id in self.unreadable


NAMED_MAX = 10
"""Bookies that a message names."""


class BookieRegistry:
    """The registrations of one cluster's bookies: ephemeral nodes under ``available`` and ``available/readonly``."""

    def __init__(self, tree: Tree, host: Host, root: str, *, stale_wait_s: float = STALE_WAIT_S) -> None:
        self._tree = tree
        self._host = host
        self._stale_wait_s = stale_wait_s
        self._writable = f"{root}/available"
        self._readonly = f"{root}/available/readonly"
        self._known = KnownAddresses()

    async def register(self, bookie_id: str, info: BookieServiceInfo, *, readonly: bool = False, stale_wait_s: float | None = None) -> None:
        """Register a bookie for the life of this session. Calls may be repeated, also with other info. The caller must listen at the
        address that it registers.

        If another session has registered the same address, that session belongs to a previous run of this bookie and has not expired yet.
        Its node is replaced. If the node has another address, the call waits until it is gone.

        Args:
            stale_wait_s: maximum wait in seconds; None uses the value given to the constructor.

        Raises:
            ArgumentError: not a bookie id.
            NodeExists: another live session holds the registration after `stale_wait_s`.
        """
        path = self._path(bookie_id, readonly=readonly)
        watch = self._tree.watch(path)
        deadline = self._host.clock.monotonic() + (self._stale_wait_s if stale_wait_s is None else stale_wait_s)
        try:
            while not await self._announce(path, info):
                try:
                    async with timeout_at(deadline):
                        await watch.changed()
                except TimeoutError:
                    raise NodeExists(f"{path}: bookie {bookie_id} is registered by another session that is alive") from None
        finally:
            watch.close()
        await self._withdraw_own(self._path(bookie_id, readonly=not readonly))

    async def set_readonly(self, bookie_id: str, info: BookieServiceInfo, readonly: bool) -> None:
        """Move the registration between the two lists. The new node is created before the old one is deleted, so clients may see both for a
        moment, but never none.
        """
        await self.register(bookie_id, info, readonly=readonly)
        await self._withdraw(self._path(bookie_id, readonly=not readonly))

    async def unregister(self, bookie_id: str, *, limit_s: float = UNREGISTER_LIMIT_S) -> None:
        """Delete this session's registration, if there is one.

        Raises:
            ConnectionLost: the store did not answer within `limit_s`. The end of the session deletes the registration, too.
        """
        try:
            async with timeout_at(self._host.clock.monotonic() + limit_s):
                await self._withdraw_own(self._path(bookie_id, readonly=False))
                await self._withdraw_own(self._path(bookie_id, readonly=True))
        except TimeoutError:
            raise ConnectionLost(f"bookie {bookie_id} could not be withdrawn within {limit_s:g} s: the metadata does not answer") from None

    async def is_registered(self, bookie_id: str) -> bool:
        """Whether this session holds a registration of the bookie. After a lost session, the bookie must register again."""
        for readonly in (False, True):
            path = self._path(bookie_id, readonly=readonly)
            stat = await retried(self._host, lambda path=path: self._tree.exists(path))  # type: ignore[misc]
            if stat is not None and stat.ephemeral_owner == self._tree.session_id:
                return True
        return False

    async def writable(self) -> dict[str, BookieServiceInfo]:
        """The bookies that accept new ledgers, sorted by id. A bookie in both lists is becoming read-only and is left out."""
        names = await self._names(self._writable)
        readonly = dict.fromkeys(await self._names(self._readonly))
        return await self._infos(self._writable, [name for name in names if name not in readonly])

    async def readonly(self) -> dict[str, BookieServiceInfo]:
        """The read-only bookies, sorted by id."""
        return await self._infos(self._readonly, await self._names(self._readonly))

    async def read_only_note(self) -> str:
        """The end of a sentence about too few writable bookies, which names those that only read; empty if there are none."""
        names = sorted(await self.readonly())
        listed = ", ".join(names[:NAMED_MAX]) + (f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else "")
        return f"; read-only for want of disk space or by request, see `triplicate bookie list`: {listed}" if names else ""

    async def registered(self) -> RegisteredBookies:
        """All registered bookies. One that moves between the lists counts by its older registration."""
        unreadable: dict[str, str] = {}
        # The writable list is read twice: a bookie that moves between the lists can be missed in both, and would count as lost.
        before = await self._listed(self._writable, unreadable)
        leaving = dict.fromkeys(await self._names(self._readonly))
        readonly = await self._infos(self._readonly, list(leaving), unreadable)
        writable = {name: info for name, info in (await self._listed(self._writable, unreadable)).items() if name not in leaving}
        others = {name: info for name, info in {**before, **readonly}.items() if name not in writable}
        unknown = {name: reason for name, reason in unreadable.items() if name not in writable and name not in others}
        return RegisteredBookies(writable, dict(sorted(others.items())), dict(sorted(unknown.items())))

    async def _listed(self, directory: str, unreadable: dict[str, str]) -> dict[str, BookieServiceInfo]:
        return await self._infos(directory, await self._names(directory), unreadable)

    async def registered_ids(self) -> frozenset[str]:
        """The bookies in either list, also those whose registration cannot be read."""
        # The writable list is read again at the end, as in `resolve`.
        names = [await self._names(directory) for directory in (self._writable, self._readonly, self._writable)]
        return frozenset(name for listed in names for name in listed)

    async def resolve(self, bookie_id: str) -> BookieServiceInfo:
        """The addresses of a bookie.

        Raises:
            BookieUnavailable: the bookie is not registered, even if its id looks like an address.
            FormatError: its registration cannot be understood.
        """
        # The writable list is read again at the end: a bookie that moves from read-only to writable can be missed in both lists.
        for directory in (self._writable, self._readonly, self._writable):
            data = await self._data(f"{directory}/{check_bookie_id(bookie_id)}")
            if data is not None:
                info = decode_service_info(bookie_id, data)
                self._known.remember(bookie_id, info)
                return info
        raise _not_registered(bookie_id)

    async def locate(self, bookie_id: str, wait_s: float) -> Location:
        """The address at which a bookie listens, or last listened according to a registration that this object has read.

        The last known address is used while the metadata store does not answer, and while the bookie is not registered, since a bookie may
        still serve after its session has ended. An address at which another bookie is registered is not used.

        Args:
            wait_s: longest wait for the metadata store, in seconds, if an address is known.

        Raises:
            BookieUnavailable: it is not registered, and no address is known. FormatError: its registration cannot be decoded.
            ConnectionLost, SessionExpired: the metadata store does not answer, and no address is known.
        """
        if self._known.get(bookie_id) is None:
            return Location(await self.resolve(bookie_id), True)
        deadline = self._host.clock.monotonic() + wait_s
        registered: bool | None = None
        try:
            async with timeout_at(deadline):
                try:
                    return Location(await self.resolve(bookie_id), True)
                except BookieUnavailable:
                    # Another bookie that is registered at the address is remembered there instead.
                    await self.writable()
                    await self.readonly()
                    registered = False
        except (TimeoutError, ConnectionLost, SessionExpired) as error:
            self._host.trace("metadata.address_from_memory", bookie_id=bookie_id, error=str(error) or f"no answer within {wait_s:g} s")
        known = self._known.get(bookie_id)
        if known is None:
            raise _not_registered(bookie_id)
        return Location(known, registered)

    def known(self) -> dict[str, BookieServiceInfo]:
        """The last registration that this object has read of each bookie, whether or not the bookie is still registered."""
        return self._known.all()

    def forget(self, bookie_id: str) -> None:
        """Drop the last known address, because nothing listens there. `locate` then uses only a present registration."""
        self._known.forget(bookie_id)

    def watch(self) -> Watch:
        """Wakes when bookies may have registered, left, or moved between the lists."""
        return JoinedWatch([self._tree.watch(self._writable), self._tree.watch(self._readonly)])

    def _path(self, bookie_id: str, *, readonly: bool) -> str:
        return f"{self._readonly if readonly else self._writable}/{check_bookie_id(bookie_id)}"

    async def _announce(self, path: str, info: BookieServiceInfo) -> bool:
        """Create the node, unless this session has created it; False while another session's node has another address."""
        data = encode_service_info(info)
        attempts = Attempts(self._host)
        while True:
            try:
                await self._tree.create(path, data, ephemeral=True, parents=True)
            except ConnectionLost as error:
                await attempts.again(error)
            except NodeExists:
                try:
                    session_id = self._tree.session_id
                    found, stat = await retried(self._host, lambda: self._tree.get(path))
                    is_own = stat.ephemeral_owner == session_id
                    if not is_own and not _has_address(found, info):
                        return False
                    if not is_own or found != data:
                        # Deleted and created again instead of set, so that watches on the list fire.
                        replacing: list[TreeOperation] = [DeleteNode(path, stat.version), CreateNode(path, data, ephemeral=True)]
                        await multi_in_session(self._tree, session_id, replacing)
                except (NoNode, BadVersion):
                    continue
                except ConnectionLost as error:
                    await attempts.again(error)
                else:
                    return True
            else:
                return True

    async def _withdraw(self, path: str) -> None:
        try:
            await retried(self._host, lambda: self._tree.delete(path))
        except NoNode:
            return

    async def _withdraw_own(self, path: str) -> None:
        await retried(self._host, lambda: delete_of_session(self._tree, path))

    async def _names(self, directory: str) -> list[str]:
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(directory))
        except NoNode:
            return []
        return [name for name in names if is_bookie_id(name)]

    async def _data(self, path: str) -> bytes | None:
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return data

    async def _infos(self, directory: str, names: list[str], unreadable: dict[str, str] | None = None) -> dict[str, BookieServiceInfo]:
        """The registrations that can be decoded. The others are added to `unreadable` with the reason."""
        infos: dict[str, BookieServiceInfo] = {}
        for name in names:
            data = await self._data(f"{directory}/{name}")
            if data is None:
                continue  # The registration was deleted in the meantime.
            try:
                infos[name] = decode_service_info(name, data)
                self._known.remember(name, infos[name])
            except FormatError as error:
                # An unreadable registration must not hide the others.
                if unreadable is not None:
                    unreadable[name] = str(error)
                self._host.trace("metadata.unreadable_registration", bookie_id=name, error=str(error))
        return infos


def _has_address(data: bytes, info: BookieServiceInfo) -> bool:
    """Whether a registration has the same address for BookKeeper's protocol."""
    try:
        address = decode_service_info("", data).rpc_address
    except FormatError:
        return False
    return address is not None and address == info.rpc_address


def _not_registered(bookie_id: str) -> BookieUnavailable:
    error = BookieUnavailable(f"bookie {bookie_id} is not registered")
    error.bookie_id = bookie_id
    return error
