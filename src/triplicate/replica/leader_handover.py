"""Moving the leader of a replica to another node. The present leader is drained, and the other node is named in the election."""

from __future__ import annotations

import asyncio

from triplicate.client import Client
from triplicate.errors import FormatError, TriplicateError
from triplicate.metadata import Tree, delete_of_session
from triplicate.replica.election import candidate_of, encode_handover, leader_of
from triplicate.replica.state_machine import Role
from triplicate.runtime import deadline_after, shielded, sleep, timeout_at

POLL_S = 0.05
WITHDRAW_LIMIT_S = 5.0


async def hand_leader_over(client: Client, path: str, target: str, limit_s: float) -> None:
    """Have another node lead the replica with the node `path`, and wait until it does.

    Args:
        limit_s: the request is withdrawn after this time, in seconds. The present leader then goes on.

    Raises:
        NoNode: there is no such replica. NodeExists: its leader is being moved already. TimeoutError: the target does not lead in time.
    """
    tree = client.metadata.tree
    try:
        await tree.create(f"{path}/handover", encode_handover(target), ephemeral=True)
    except asyncio.CancelledError:
        await shielded(_withdraw(client, path))  # The request may have been made. It would be in the way as long as the session lives.
        raise
    try:
        async with timeout_at(deadline_after(client.host.clock, limit_s)):
            while not await _leads(tree, path, target):
                await sleep(client.host.clock, POLL_S)
    finally:
        await shielded(_withdraw(client, path))


async def _leads(tree: Tree, path: str, target: str) -> bool:
    try:
        leader = await leader_of(tree, path)
    except FormatError:
        return False
    if leader is None or leader.node_id != target:
        return False
    candidate = await candidate_of(tree, path, target)
    return candidate is not None and candidate.role == Role.LEADER.value


async def _withdraw(client: Client, path: str) -> None:
    """Withdraw this session's request. When the metadata do not answer, it ends with the session."""
    tree, clock = client.metadata.tree, client.host.clock
    until_s = clock.monotonic() + WITHDRAW_LIMIT_S
    while True:
        try:
            async with timeout_at(until_s):
                await delete_of_session(tree, f"{path}/handover")
                return
        except (TriplicateError, TimeoutError) as error:
            client.host.trace("node.handover_not_withdrawn", path=path, error=repr(error))
            if clock.monotonic() >= until_s:
                return
            await sleep(clock, POLL_S)
