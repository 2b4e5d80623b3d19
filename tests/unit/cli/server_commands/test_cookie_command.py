"""Cookies are deleted only when nothing needs their bookie, and are stored only where they belong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.autorecovery.decommission_rig import add_cookie
from tests.unit.autorecovery.recovery_rig import lose, write_ledger
from tests.unit.client.cluster import fake_cluster, run
from triplicate.cli.server_commands.cookie_command import CookieRefusal, cookie_facts, cookie_of, delete_cookie, store_cookie
from triplicate.errors import ArgumentError, FormatError
from triplicate.metadata import Cookie, encode_cookie


def test_a_cookie_is_deleted_only_when_nothing_needs_its_bookie() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 2)
            await cluster.settled(ledger_id, 1)
            await add_cookie(cluster, "b")
            assert await delete_cookie(client, "b") == CookieRefusal(True, (ledger_id,))
            await lose(cluster, "b")
            assert await delete_cookie(client, "b") == CookieRefusal(False, (ledger_id,))
            assert await cluster.metadata.cookies.get("b") is not None
            await client.delete(ledger_id)
            assert not await delete_cookie(client, "b")
            assert await cluster.metadata.cookies.get("b") is None
            with pytest.raises(ArgumentError, match="bookie b has no cookie; there are those of: none"):
                await delete_cookie(client, "b")

    run(main())


def test_a_cookie_is_stored_only_where_it_belongs() -> None:
    async def main() -> None:
        async with fake_cluster("a") as cluster:
            metadata = cluster.metadata
            given = Cookie("b", "/j1,/j2", ("/l",), metadata.instance_id)
            with pytest.raises(ArgumentError, match="bookie b has no cookie"):
                await store_cookie(metadata, "b", encode_cookie(given), replaces=True)
            await store_cookie(metadata, "b", encode_cookie(given), replaces=False)
            assert await cookie_of(metadata, "b") == given
            moved = replace(given, ledger_dirs=("/other",))
            with pytest.raises(ArgumentError, match="has another cookie already"):
                await store_cookie(metadata, "b", encode_cookie(moved), replaces=False)
            await store_cookie(metadata, "b", encode_cookie(moved), replaces=True)
            assert cookie_facts(await cookie_of(metadata, "b"))["ledger_directories"] == ["/other"]
            assert cookie_facts(moved)["journal_directories"] == ["/j1", "/j2"]
            with pytest.raises(ArgumentError, match="cookie of bookie b, not of c"):
                await store_cookie(metadata, "c", encode_cookie(given), replaces=False)
            with pytest.raises(ArgumentError, match="cookie of cluster elsewhere, not of"):
                await store_cookie(metadata, "b", encode_cookie(replace(given, instance_id="elsewhere")), replaces=True)
            with pytest.raises(FormatError, match="its first line is 'no cookie'"):
                await store_cookie(metadata, "b", b"no cookie", replaces=False)

    run(main())
