"""Election of the auditor: each candidate votes for itself, and the oldest vote wins.

A vote is an ephemeral sequential node. It ends with its session, and the next oldest vote wins. The election is not exclusive: until a
session expires, two processes may believe to be the auditor. The auditor's actions must tolerate that.

Source: BookKeeper `ZkLedgerAuditorManager`.
"""

from __future__ import annotations

import re
from contextlib import suppress

from triplicate.errors import ConnectionLost, NodeExists, NoNode
from triplicate.metadata.core.bookie_ids import check_bookie_id
from triplicate.metadata.core.repair_formats import decode_vote, encode_vote
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.retries import Attempts, retried
from triplicate.runtime import Host

_VOTE = re.compile(r"V_-?[0-9]{9,10}", re.ASCII)


class AuditorElection:
    """The election of one cluster's auditor. One candidate per session."""

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._votes = f"{root}/underreplication/auditorelection"
        self._vote_name: str | None = None

    async def current(self) -> str | None:
        """The bookie id of the auditor, or None if there is no candidate.

        Raises:
            FormatError: the vote cannot be decoded.
        """
        while True:
            names = await self._names()
            if not names:
                return None
            path = f"{self._votes}/{names[0]}"
            with suppress(NoNode):  # It was withdrawn in between, so another vote is first.
                data, _ = await retried(self._host, lambda path=path: self._tree.get(path))  # type: ignore[misc]
                return decode_vote(data)

    async def candidates(self) -> list[str]:
        """The names of the votes, the auditor's vote first."""
        return await self._names()

    async def elected(self, bookie_id: str) -> None:
        """Vote, and return when this candidate is the auditor. A vote lost with its session is cast again, behind all others.

        Raises:
            ArgumentError: not a bookie id.
            ConnectionLost: the outcome of the vote is unknown even after several attempts. Call again, or call `withdraw`.
        """
        check_bookie_id(bookie_id)
        with suppress(NodeExists):
            await retried(self._host, lambda: self._tree.create(self._votes, b"", parents=True))
        while True:
            own = await self._vote(bookie_id)
            names = await self._names()
            if own not in names:
                continue
            place = names.index(own)
            if place == 0:
                # Informational: shown to people who inspect the tree.
                await retried(self._host, lambda: self._tree.set(self._votes, encode_vote(bookie_id)))
                return
            await self._left(f"{self._votes}/{names[place - 1]}")

    async def lost(self) -> None:
        """Wait until this candidate's vote is gone: withdrawn, deleted, or ended with its session."""
        if self._vote_name is not None:
            await self._left(f"{self._votes}/{self._vote_name}")

    async def withdraw(self) -> None:
        """Delete the vote of this session, if there is one."""
        while (own := await self._find_vote()) is not None:
            path = f"{self._votes}/{own}"
            with suppress(NoNode):
                await retried(self._host, lambda path=path: self._tree.delete(path))  # type: ignore[misc]
        self._vote_name = None

    async def _vote(self, bookie_id: str) -> str:
        """The name of this session's vote. It is cast if it does not exist."""
        attempts = Attempts(self._host)
        while True:
            try:
                # Searched before each attempt: a vote whose answer was lost must not be cast twice.
                self._vote_name = await self._find_vote()
                if self._vote_name is None:
                    path = await self._tree.create(f"{self._votes}/V_", encode_vote(bookie_id), ephemeral=True, sequential=True)
                    self._vote_name = path.rpartition("/")[2]
            except ConnectionLost as error:
                await attempts.again(error)
            else:
                return self._vote_name

    async def _find_vote(self) -> str | None:
        for name in await self._names():
            path = f"{self._votes}/{name}"
            stat = await retried(self._host, lambda path=path: self._tree.exists(path))  # type: ignore[misc]
            if stat is not None and stat.ephemeral_owner == self._tree.session_id:
                return name
        return None

    async def _left(self, path: str) -> None:
        """Wait until a vote is gone."""
        watch = self._tree.watch(path)
        try:
            while await retried(self._host, lambda: self._tree.exists(path)) is not None:
                await watch.changed()
        finally:
            watch.close()

    async def _names(self) -> list[str]:
        """The votes in the order of casting. Other nodes are ignored."""
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(self._votes))
        except NoNode:
            return []
        return sorted((name for name in names if _VOTE.fullmatch(name)), key=lambda name: int(name[2:]))
