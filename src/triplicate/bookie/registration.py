"""Registers the bookie for clients, keeps the registration over lost sessions, and moves it to the read-only list while a disk is full or
an operator requests it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.disk_guard import DiskGuard
from triplicate.config import BookieSettings
from triplicate.errors import MetadataError, SessionExpired
from triplicate.metadata import BookieServiceInfo, ClusterMetadata
from triplicate.runtime import Host, fault_point, sleep

Reopen = Callable[[], Awaitable[ClusterMetadata]]


class MetadataUser(Protocol):
    """Uses the cluster's metadata, which is replaced after a session is over."""

    metadata: ClusterMetadata


class Registration:
    """See the module's text.

    Args:
        guard: decides between the writable and the read-only list.
        reopen: opens the cluster's metadata again after its session is over; None: the tree reconnects itself, or the bookie stays
        unregistered.
    """

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        guard: DiskGuard,
        metadata: ClusterMetadata,
        metrics: BookieMetrics,
        bookie_id: str,
        *,
        reopen: Reopen | None,
    ) -> None:
        self._host = host
        self._settings = settings
        self._guard = guard
        self._metadata = metadata
        self._metrics = metrics
        self._reopen = reopen
        self._opened_here = False
        """Whether `_metadata` came from `reopen` and is closed here. The bookie's owner closes the metadata that it gave."""
        self._bookie_id = bookie_id
        self._announced: bool | None = None
        """Whether the bookie is registered as read-only; None: it is not registered."""

    @property
    def announced(self) -> bool:
        """Whether the bookie is registered, writable or read-only."""
        return self._announced is not None

    async def register(self, info: BookieServiceInfo) -> None:
        """Announce the bookie for the first time. Raises NodeExists: another process has this id; MetadataError."""
        await self._read_request()
        await self._announce(info)

    async def unregister(self) -> None:
        """Remove the registration if the metadata is reachable. The end of the session has the same effect."""
        self._metrics.status.set(-1)
        try:
            await self._metadata.bookies.unregister(self._bookie_id)
        except MetadataError as error:
            self._host.trace("bookie.unregister_failed", error=str(error))

    async def run(self, info: BookieServiceInfo, users: Sequence[MetadataUser]) -> None:
        """Keep the registration present and correct.

        Args:
            users: get the metadata that `reopen` returns.
        """
        while True:
            await sleep(self._host.clock, self._settings.registration_check_interval_s)
            try:
                await self._read_request()
                if self._announced != self._guard.read_only or not await self._metadata.bookies.is_registered(self._bookie_id):
                    self._metrics.status.set(-1)
                    await self._announce(info)
            except SessionExpired as error:
                self._announced = None
                self._metrics.status.set(-1)
                self._host.trace("bookie.session_expired", error=str(error))
                await self._open_again(users)
            except MetadataError as error:
                # The bookie serves on meanwhile, for clients that have its address.
                self._announced = None
                self._host.trace("bookie.registration_failed", error=str(error))

    async def _read_request(self) -> None:
        self._guard.set_requested(await self._metadata.read_only_requests.is_requested(self._bookie_id))

    @fault_point("bookie.register")
    async def _announce(self, info: BookieServiceInfo) -> None:
        read_only = self._guard.read_only
        if self._announced is None:
            await self._metadata.bookies.register(self._bookie_id, info, readonly=read_only)
        else:
            await self._metadata.bookies.set_readonly(self._bookie_id, info, read_only)
        self._announced = read_only
        self._metrics.status.set(0 if read_only else 1)
        await self._record_machine(info)
        self._host.trace("bookie.registered", bookie_id=self._bookie_id, read_only=read_only)

    async def _record_machine(self, info: BookieServiceInfo) -> None:
        """Record where the copies of this bookie are while it is away. The auditor does so as well, so a failure is not repeated."""
        try:
            await self._metadata.machines.record(self._bookie_id, info)
        except MetadataError as error:
            self._host.trace("bookie.machine_not_recorded", error=str(error))

    async def _open_again(self, users: Sequence[MetadataUser]) -> None:
        if self._reopen is None:
            return
        try:
            if self._opened_here:
                await self._metadata.aclose()
            self._metadata = await self._reopen()
        except (MetadataError, OSError) as error:  # The next check finds the session over and tries again.
            self._host.trace("bookie.metadata_unreachable", error=str(error))
            return
        self._opened_here = True
        for user in users:
            user.metadata = self._metadata

    async def aclose(self) -> None:
        """Close the metadata if it was opened here."""
        if self._opened_here:
            await self._metadata.aclose()
