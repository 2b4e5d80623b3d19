"""Gives a bookie whose disks were lost empty ones: a new incarnation under the same id.

The order makes an interruption harmless: the metadata first records that the bookie has lost its data, then the new directories get
their cookies. In between the bookie does not start, since a directory lacks its cookie.
"""

from __future__ import annotations

from triplicate.bookie.directories import REPLACE, Directories
from triplicate.config import BookieSettings
from triplicate.errors import ConfigError, EnvironmentFault
from triplicate.metadata import ClusterMetadata, Incarnation, check_bookie_id
from triplicate.runtime import Host

SHOWN_NAMES = 3


def bookie_id_of(settings: BookieSettings) -> str:
    """The bookie id that these settings give.

    Raises:
        ConfigError: they give none. ArgumentError: it is not a valid id.
    """
    if settings.bookie_id:
        return check_bookie_id(settings.bookie_id)
    if settings.port == 0:
        raise ConfigError("bookie.bookie_id is empty and bookie.port is 0: set one of them, since the id must stay the same for ever")
    return check_bookie_id(f"{settings.advertised_address or settings.host}:{settings.port}")


class Replacement:
    """A replacement: `check`, ask the operator, then `carry_out`."""

    def __init__(self, host: Host, settings: BookieSettings, metadata: ClusterMetadata) -> None:
        self.bookie_id = bookie_id_of(settings)
        self.directories = Directories(host.disk, settings)
        self._metadata = metadata

    async def check(self) -> None:
        """Check that there is a bookie to replace, and that no data would be lost.

        Raises:
            ConfigError: the cluster knows no such bookie, or a directory holds data. EnvironmentFault: the bookie runs.
        """
        for problem in self.directories.settings_problems():
            raise problem
        await self._check_known()
        await self._check_stopped()
        self._check_empty()

    async def _check_known(self) -> None:
        metadata, bookie_id = self._metadata, self.bookie_id
        if await metadata.cookies.get(bookie_id) is None and (await metadata.incarnations.get(bookie_id)).number == 1:
            names = await metadata.cookies.bookie_ids()
            raise ConfigError(
                f"the cluster knows no bookie {bookie_id}, so nothing of it can be replaced: start it on empty directories, or correct "
                f"bookie.bookie_id; there are: {', '.join(names) or 'none'}"
            )

    async def _check_stopped(self) -> None:
        if self.bookie_id in await self._metadata.bookies.registered():
            raise EnvironmentFault(
                f"bookie {self.bookie_id} is registered, so it runs, or has just been killed: stop it, wait until its session is over, "
                f"and run {REPLACE} again"
            )

    def _check_empty(self) -> None:
        for directory in self.directories.configured:
            names = self.directories.data_in(directory)
            if names:
                more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
                raise ConfigError(
                    f"{directory}: it holds data ({', '.join(names[:SHOWN_NAMES])}{more}): nothing is lost here, so start the bookie; if "
                    f"it is to be given up all the same, move the data away and run {REPLACE} again"
                )

    async def carry_out(self) -> Incarnation:
        """Begin the new incarnation; returns it.

        Raises:
            As `check`, which is repeated. OSError, BadVersion: it may be run again.
        """
        await self.check()
        self.directories.lock(make=True)
        try:
            self._check_empty()
            bound = await self._metadata.ledgers.new_id()
            incarnation = await self._metadata.incarnations.begin_next(self.bookie_id, bound)
            known = await self._metadata.cookies.get(self.bookie_id)
            cookie = self.directories.cookie(self._metadata, self.bookie_id)
            await self.directories.stamp(self._metadata, cookie, incarnation.number, known[1] if known is not None else None)
        finally:
            self.directories.close()
        return incarnation


async def mark_visited(metadata: ClusterMetadata, bookie_id: str) -> bool:
    """Record that the entries a replaced bookie held have been restored or are not needed. A running bookie notices it.

    Returns:
        False if that was recorded already, or the bookie was never replaced.
    """
    return await metadata.incarnations.mark_visited(bookie_id)
