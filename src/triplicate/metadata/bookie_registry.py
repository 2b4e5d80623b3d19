"""Which bookies are there, writable or read-only, and where they listen.

Source: BookKeeper `ZKRegistrationManager`, `ZKRegistrationClient`.
"""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import BadVersion, BookieUnavailable, ConnectionLost, FormatError, NodeExists, NoNode, SessionExpired
from triplicate.metadata.core.bookie_ids import check_bookie_id, is_bookie_id
from triplicate.metadata.core.known_addresses import KnownAddresses, Location
from triplicate.metadata.core.service_info import BookieServiceInfo, decode_service_info, encode_service_info
from triplicate.metadata.core.tree import CreateNode, DeleteNode, Tree, Watch
from triplicate.metadata.drivers.watches import JoinedWatch
from triplicate.metadata.retries import LONGEST_DELAY_S, Attempts, retried
from triplicate.runtime import Host, sleep, timeout_at

SESSION_TIMEOUT_S = 10.0
"""How long a metadata store holds a silent process for alive, unless the process asks for something else."""
SESSION_NOTICED_S = 5.0
"""How much later the end of a session is noticed at most."""
STALE_WAIT_S = SESSION_TIMEOUT_S + SESSION_NOTICED_S
"""How long to wait for the node of a previous life to vanish."""

UNREGISTER_LIMIT_S = 3.0
"""A bookie that ends does not wait longer for a metadata store that is gone."""


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
        """Announce a bookie for as long as this session lives. Repeating it, also with other info, is fine. The caller listens at the
        address that it announces.

        Where another session has announced the same address, that is a former life of this bookie, whose session nobody has ended yet: its
        node is replaced. A node with another address is waited for.

        Args:
            stale_wait_s: for how long; None: as long as the directory was made with.

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
        """Move the registration between the two lists. The new node is made before the old one goes, so a client sees the bookie in
        both for a moment, and never in neither.
        """
        await self.register(bookie_id, info, readonly=readonly)
        await self._withdraw(self._path(bookie_id, readonly=not readonly))

    async def unregister(self, bookie_id: str, *, limit_s: float = UNREGISTER_LIMIT_S) -> None:
        """Withdraw this session's registration; no error when there is none.

        Raises:
            ConnectionLost: the store did not answer within `limit_s`; the end of the session does the same.
        """
        try:
            async with timeout_at(self._host.clock.monotonic() + limit_s):
                await self._withdraw_own(self._path(bookie_id, readonly=False))
                await self._withdraw_own(self._path(bookie_id, readonly=True))
        except TimeoutError:
            raise ConnectionLost(f"bookie {bookie_id} could not be withdrawn within {limit_s:g} s: the metadata does not answer") from None

    async def keep_registered(self, bookie_id: str, info: BookieServiceInfo, is_readonly: Callable[[], bool]) -> None:
        """Register, and again whenever this session's registration is gone, until cancelled: sessions are lost and renewed.

        Args:
            is_readonly: asked each time, which list the bookie belongs to.

        Raises:
            NodeExists: another live session has taken the registration. SessionExpired: the tree was closed.
        """
        watch = self.watch()
        try:
            while True:
                try:
                    if not await self.is_registered(bookie_id):
                        await self.register(bookie_id, info, readonly=is_readonly())
                        self._host.trace("metadata.bookie_registered", bookie_id=bookie_id, readonly=is_readonly())
                except ConnectionLost as error:
                    # The attempts of one round are used up; the bookie serves on, and goes on asking.
                    self._host.trace("metadata.connection_lost", bookie_id=bookie_id, error=str(error))
                    await sleep(self._host.clock, LONGEST_DELAY_S)
                    continue
                await watch.changed()
        finally:
            watch.close()

    async def is_registered(self, bookie_id: str) -> bool:
        """Whether this session holds a registration of the bookie now: after a session was lost it must register again."""
        for readonly in (False, True):
            path = self._path(bookie_id, readonly=readonly)
            stat = await retried(self._host, lambda path=path: self._tree.exists(path))  # type: ignore[misc]
            if stat is not None and stat.ephemeral_owner == self._tree.session_id:
                return True
        return False

    async def writable(self) -> dict[str, BookieServiceInfo]:
        """The bookies that take new ledgers, sorted by id. One that is in both lists is about to be read-only and left out."""
        names = await self._names(self._writable)
        readonly = dict.fromkeys(await self._names(self._readonly))
        return await self._infos(self._writable, [name for name in names if name not in readonly])

    async def readonly(self) -> dict[str, BookieServiceInfo]:
        """The bookies that only serve reads, sorted by id."""
        return await self._infos(self._readonly, await self._names(self._readonly))

    async def resolve(self, bookie_id: str) -> BookieServiceInfo:
        """Where a bookie listens.

        Raises:
            BookieUnavailable: it is not registered, even if its id looks like an address.
            FormatError: its registration cannot be understood.
        """
        # The writable list is asked again at the end: on its way from read-only to writable a bookie may have been missed in both.
        for directory in (self._writable, self._readonly, self._writable):
            data = await self._data(f"{directory}/{check_bookie_id(bookie_id)}")
            if data is not None:
                info = decode_service_info(bookie_id, data)
                self._known.remember(bookie_id, info)
                return info
        raise _not_registered(bookie_id)

    async def locate(self, bookie_id: str, wait_s: float) -> Location:
        """Where a bookie listens, or last listened, as far as this object has read its registration before.

        The last known address counts while the metadata do not answer, and while the bookie is not registered, since one whose session
        ended may serve all the same. No address counts at which another bookie is registered.

        Args:
            wait_s: how long the metadata are asked where there is an address to fall back to.

        Raises:
            BookieUnavailable: it is not registered, and nothing is known of it. FormatError: its registration cannot be understood.
            ConnectionLost, SessionExpired: the metadata do not answer, and nothing is known of it.
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
                    # Whoever is registered at the address is remembered there instead.
                    await self.writable()
                    await self.readonly()
                    registered = False
        except (TimeoutError, ConnectionLost, SessionExpired) as error:
            self._host.trace("metadata.address_from_memory", bookie_id=bookie_id, error=str(error) or f"no answer within {wait_s:g} s")
        known = self._known.get(bookie_id)
        if known is None:
            raise _not_registered(bookie_id)
        return Location(known, registered)

    def forget(self, bookie_id: str) -> None:
        """Nobody listens where the bookie was last seen: `locate` asks its registration alone until there is one again."""
        self._known.forget(bookie_id)

    def watch(self) -> Watch:
        """Wakes when bookies may have come, gone, or moved between the lists."""
        return JoinedWatch([self._tree.watch(self._writable), self._tree.watch(self._readonly)])

    def _path(self, bookie_id: str, *, readonly: bool) -> str:
        return f"{self._readonly if readonly else self._writable}/{check_bookie_id(bookie_id)}"

    async def _announce(self, path: str, info: BookieServiceInfo) -> bool:
        """Make the node, or find it made by this session; False while another session's is there that tells another address."""
        data = encode_service_info(info)
        attempts = Attempts(self._host)
        while True:
            try:
                await self._tree.create(path, data, ephemeral=True, parents=True)
            except ConnectionLost as error:
                await attempts.again(error)
            except NodeExists:
                try:
                    found, stat = await retried(self._host, lambda: self._tree.get(path))
                    is_own = stat.ephemeral_owner == self._tree.session_id
                    if not is_own and not _tells_address(found, info):
                        return False
                    if not is_own or found != data:
                        # Deleted and made anew rather than set, so that those who watch the list notice.
                        await self._tree.multi([DeleteNode(path, stat.version), CreateNode(path, data, ephemeral=True)])
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
        stat = await retried(self._host, lambda: self._tree.exists(path))
        if stat is not None and stat.ephemeral_owner == self._tree.session_id:
            await self._withdraw(path)

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

    async def _infos(self, directory: str, names: list[str]) -> dict[str, BookieServiceInfo]:
        infos: dict[str, BookieServiceInfo] = {}
        for name in names:
            data = await self._data(f"{directory}/{name}")
            if data is None:
                continue  # It left meanwhile.
            try:
                infos[name] = decode_service_info(name, data)
                self._known.remember(name, infos[name])
            except FormatError as error:
                # One bookie that cannot be understood must not hide the others.
                self._host.trace("metadata.unreadable_registration", bookie_id=name, error=str(error))
        return infos


def _tells_address(data: bytes, info: BookieServiceInfo) -> bool:
    """Whether a registration tells the same address for BookKeeper's protocol."""
    try:
        address = decode_service_info("", data).rpc_address
    except FormatError:
        return False
    return address is not None and address == info.rpc_address


def _not_registered(bookie_id: str) -> BookieUnavailable:
    error = BookieUnavailable(f"bookie {bookie_id} is not registered")
    error.bookie_id = bookie_id
    return error
