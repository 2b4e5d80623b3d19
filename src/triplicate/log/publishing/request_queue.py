"""Publish requests, as nodes beside a log's head. A publisher queues a request, and the log's writer serves it at its next roll.

A request is an ephemeral node and disappears with its publisher. The transaction that lists the ledgers deletes the request. A request
that was withdrawn, or whose publisher has ended, is therefore never served, and one that was served no longer exists.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.errors import CorruptionError, FormatError, LogOwned, MetadataError, NodeExists, NoNode
from triplicate.log.core.publish_request import REQUESTS_MAXIMUM, PublishRequest, arrival_of, decode_request, encode_request
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ownership import live_owner
from triplicate.metadata import JoinedWatch, Watch, own_paths
from triplicate.runtime import fault_point, shielded, sleep, timeout_at

CHECK_S = 1.0
"""The interval at which a publisher checks its request, in addition to each change that wakes it."""
REFUSALS_MAXIMUM = 10
"""The number of refusals without a known cause after which a publisher gives up: its writer may be of a later release."""


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request and the path of its node, which is never changed."""

    path: str
    request: PublishRequest


class RequestQueue:
    """The requests of one log."""

    def __init__(self, store: HeadStore, name: str) -> None:
        self._store = store
        self._name = name
        self._folder = own_paths.requests_path(store.own_root, name)

    def watch(self) -> Watch:
        """A watch that fires when requests may have been queued or deleted."""
        return self._store.tree.watch(self._folder)

    async def pending(self) -> list[QueuedRequest]:
        """The queued requests in the order of arrival. One that cannot be read is left to its publisher."""
        found: list[QueuedRequest] = []
        for child in (await self._children())[:REQUESTS_MAXIMUM]:
            path = f"{self._folder}/{child}"
            try:
                data, _ = await self._store.persist(lambda path=path: self._store.tree.get(path))  # type: ignore[misc]
                found.append(QueuedRequest(path, decode_request(data, self._name)))
            except NoNode:
                continue
            except (FormatError, CorruptionError) as error:
                self._store.host.trace("log.request_unreadable", log=self._name, error=repr(error))
        return found

    async def queue(self, request: PublishRequest) -> str | None:
        """Create a request's node. Returns its path, or None while too many requests are queued.

        Raises:
            NoNode: the log is gone. ArgumentError: the request is too large.
        """
        store, data = self._store, encode_request(request)

        async def attempt() -> str | None:
            children = await self._children()
            # An earlier attempt may have been applied although its answer was lost.
            made = next((child for child in children if child.startswith(request.token)), None)
            if made is None:
                if len(children) >= REQUESTS_MAXIMUM:
                    return None
                path = await store.tree.create(f"{self._folder}/{request.token}-", data, ephemeral=True, sequential=True)
                made = path.rpartition("/")[2]
                children = await self._children()
            if made in children[REQUESTS_MAXIMUM:]:
                # Other publishers queued theirs at the same time.
                await self.delete(f"{self._folder}/{made}")
                return None
            return f"{self._folder}/{made}"

        try:
            return await store.persist(attempt)
        except NoNode:
            await store.persist(self._ensure_folder)
            return await store.persist(attempt)

    async def is_queued(self, path: str) -> bool:
        """Whether a request is still queued."""
        return await self._store.persist(lambda: self._store.tree.exists(path)) is not None

    async def delete(self, path: str) -> None:
        """Delete a request; harmless if it is gone."""

        async def attempt() -> None:
            try:
                await self._store.tree.delete(path)
            except NoNode:
                return

        await self._store.persist(attempt)

    async def withdraw(self, token: str) -> None:
        """Delete the request with this token, if it exists. Afterwards it cannot be served, and whether it was served is definite."""
        await self._store.persist(lambda: self._store.tree.sync(self._store.path(self._name)))
        for child in await self._children():
            if child.startswith(token):
                await self.delete(f"{self._folder}/{child}")

    async def _children(self) -> list[str]:
        try:
            children, _ = await self._store.persist(lambda: self._store.tree.children(self._folder))
        except NoNode:
            return []
        return sorted(children, key=arrival_of)

    async def _ensure_folder(self) -> None:
        try:
            # Without parents: a deleted log must not be recreated as an empty node.
            await self._store.tree.create(self._folder)
        except NodeExists:
            return


class RequestClient:
    """Requests the writer of a log to list one batch, within one time limit for all attempts.

    Args:
        wait_s: the time limit, from now on.
    """

    def __init__(self, store: HeadStore, name: str, wait_s: float) -> None:
        self._store = store
        self._name = name
        self._requests = RequestQueue(store, name)
        self._wait_s = wait_s
        self._deadline = store.host.clock.monotonic() + wait_s
        self._is_over = False
        self._refusals = 0
        self.was_sent = False
        """Whether a writer may have listed the batch for this client."""

    async def submit(self, request: PublishRequest, writer: str) -> None:
        """Queue a request and wait until it was served or refused, the log has no living writer, or the time is over.

        The request is withdrawn then, so that reading the log shows whether it was served.

        Raises:
            LogOwned: the time was over at the last call already, or the writer has refused too often. Nothing was published.
        """
        if self._refusals >= REFUSALS_MAXIMUM:
            raise LogOwned(
                f"log {self._name!r} is written by {writer!r}, which has refused the batch {self._refusals} times: "
                "nothing was published. Its trace log.request_refused gives the reason"
            )
        if self._is_over:
            raise LogOwned(
                f"log {self._name!r} is written by {writer!r}, which did not list the batch within {self._wait_s:g} s: nothing was "
                "published. Publish it again, with a longer wait (log_client.publish_wait_s) if its bookies are slow, or stop that writer; "
                "a writer of an earlier release lists nothing for others"
            )
        try:
            await self._await_change(request)
        except BaseException:
            await shielded(self._give_up(request.token))
            raise
        await self._requests.withdraw(request.token)

    async def _await_change(self, request: PublishRequest) -> None:
        clock = self._store.host.clock
        path: str | None = None
        full = self._store.backoff()
        # The head's children include the node of its living writer. A refused request changes only the queue.
        watch = JoinedWatch([self._store.watch(self._name), self._requests.watch()])
        try:
            while await live_owner(self._store, self._name) is not None:
                if clock.monotonic() >= self._deadline:
                    self._is_over = True
                    return
                if path is None:
                    path = await self._queue(request)
                elif not await self._requests.is_queued(path):
                    self._refusals += 1  # Or it was served; then there is no further attempt.
                    return
                if path is None:
                    # The queue is full. Each change would wake all publishers that wait for room, to create a request and delete it.
                    await sleep(clock, min(full.next_s(), max(0.0, self._deadline - clock.monotonic())))
                else:
                    await _woken(watch, min(self._deadline, clock.monotonic() + CHECK_S))
        finally:
            watch.close()

    @fault_point("log.request")
    async def _queue(self, request: PublishRequest) -> str | None:
        self.was_sent = True
        return await self._requests.queue(request)

    async def _give_up(self, token: str) -> None:
        try:
            await self._requests.withdraw(token)
        except MetadataError as error:
            # It expires with the session. Until then the batch may be listed: the caller was interrupted, so the outcome is unknown.
            self._store.host.trace("log.request_left", log=self._name, error=repr(error))


async def _woken(watch: Watch, deadline: float) -> None:
    try:
        async with timeout_at(deadline):
            await watch.changed()
    except TimeoutError:
        return
