"""The largest publishes, as one transaction of a real ZooKeeper: nodes as large as they get, and the longest paths of ledgers."""

from __future__ import annotations

from tests.unit.metadata.stores import fresh_servers, run
from triplicate.log.core import head_changes
from triplicate.log.core.head import NODE_LIMIT_BYTES
from triplicate.log.publishing import publication
from triplicate.metadata import CheckVersion, LongHierarchicalPaths, SetData, TreeOperation
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
from triplicate.runtime import real_host

LEDGER = "/ledgers" + LongHierarchicalPaths().path(2**63 - 1)
HEAD = "/triplicate/" + "i" * 36 + "/logs/" + "l" * 255


def test_the_largest_publishes_are_taken_by_a_server() -> None:
    async def body() -> None:
        # A slow server answers nothing for a second or two meanwhile; a session bears an eighth of its timeout.
        tree = await ZooKeeperTree.open(await fresh_servers(), real_host("test"), session_timeout_s=30.0)
        try:
            for path in (HEAD, f"{HEAD}/pages/0000000001", LEDGER):
                await tree.create(path, parents=True)
            pages = publication.LEDGERS_MAXIMUM // head_changes.PAGE_SEGMENTS + 10
            head: list[TreeOperation] = [SetData(HEAD, b"." * NODE_LIMIT_BYTES), *[CheckVersion(f"{HEAD}/pages/0000000001")] * pages]
            await tree.multi([*head, *[CheckVersion(LEDGER, 0)] * publication.LEDGERS_MAXIMUM])
            size = 300
            marks = publication.MARKS_BYTES_MAXIMUM // (size + publication.MARK_OVERHEAD_BYTES)
            await tree.multi([*head, *[SetData(LEDGER, b"." * size)] * marks])
            assert (await tree.exists(LEDGER)) is not None
            data, stat = await tree.get(HEAD)
            assert (len(data), stat.version) == (NODE_LIMIT_BYTES, 2)
        finally:
            await tree.close()

    run(body())
