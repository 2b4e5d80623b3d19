from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from triplicate.client import Client
from triplicate.client.bookie_space import FreeDisk
from triplicate.client.cluster_placement import policy_of
from triplicate.config import ClientSettings
from triplicate.errors import ConnectionLost, NotEnoughBookies
from triplicate.ledger import Adherence, FaultDomain, replace_bookies
from triplicate.ledger.placement.placement_rules import UNIFORM
from triplicate.metadata import (
    BookieMachines,
    BookieServiceInfo,
    ClusterMetadata,
    Cookie,
    LocationTable,
    MemoryStore,
    MemoryTree,
    NetworkLocations,
    bookie_service,
)
from triplicate.runtime import Metrics, real_host


@asynccontextmanager
async def client_of(bookies: dict[str, tuple[str, str]], settings: ClientSettings, metrics: Metrics | None = None) -> AsyncIterator[Client]:
    """A client of a cluster with these registrations: bookie id to host and network location. Nothing listens there."""
    host = real_host("client", seed=1)
    async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
        for port, (bookie_id, (machine, location)) in enumerate(bookies.items(), 1000):
            await metadata.bookies.register(bookie_id, bookie_service(machine, port, network_location=location))
        async with Client(host, metadata, settings, metrics) as client:
            yield client


def test_a_ledger_is_created_on_different_machines() -> None:
    async def main() -> None:
        bookies = {f"b{number}": (f"10.0.0.{number % 3}", "") for number in range(9)}
        metrics = Metrics()
        async with client_of(bookies, ClientSettings(), metrics) as client:
            for _ in range(20):
                writer = await client.create()
                assert len({bookies[name][0] for name in writer.metadata.last_segment.ensemble}) == 3
                writer.abandon()
            verdict = await client.placement.verdict(writer.metadata)
            assert verdict.adherence is Adherence.STRICT
        assert 'bookkeeper_client_ensembles_chosen_total{adherence="strict"} 20.0' in metrics.expose().decode()

    asyncio.run(main())


def test_enforced_racks_are_kept_or_the_creation_fails() -> None:
    async def main() -> None:
        bookies = {f"b{number}": (f"10.0.0.{number}", "/near" if number else "/far") for number in range(6)}
        settings = ClientSettings(placement_policy="rack-aware", placement_enforced=True)
        async with client_of(bookies, settings) as client:
            for _ in range(10):
                writer = await client.create()
                assert "b0" in writer.metadata.last_segment.ensemble
                writer.abandon()
            await client.metadata.network_locations.set("b0", "/near")
            client.placement._table_due = 0.0
            with pytest.raises(NotEnoughBookies, match=r"2 racks for each entry.*/default-region/near: b0, b1"):
                await client.create()

    asyncio.run(main())


def test_the_uniform_policy_reads_no_locations(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with client_of({name: (name, "") for name in "abc"}, ClientSettings()) as client:
            monkeypatch.delattr(type(client.metadata.network_locations), "read")
            (await client.create()).abandon()

    asyncio.run(main())


def test_copies_do_not_share_the_machine_that_is_left() -> None:
    async def main() -> None:
        bookies = {"a": ("10.0.0.1", ""), "b": ("10.0.0.1", ""), "c": ("10.0.0.2", "")}
        async with client_of(bookies, ClientSettings()) as client:
            (await client.create(ensemble_size=2, write_quorum=2, ack_quorum=1)).abandon()
            await client.metadata.bookies.unregister("c")
            with pytest.raises(NotEnoughBookies, match="2 different machines"):
                await client.create(ensemble_size=2, write_quorum=2, ack_quorum=1)

    asyncio.run(main())


@pytest.mark.parametrize("away", ["gone", "10.0.0.1:3181"])
def test_a_bookie_that_this_client_never_saw_registered_still_has_its_machine(away: str) -> None:
    """By its record, or by an id of the form host:port."""

    async def main() -> None:
        async with client_of({"a": ("10.0.0.0", ""), "b": ("10.0.0.1", ""), "c": ("10.0.0.2", "")}, ClientSettings()) as client:
            if ":" not in away:
                await client.metadata.machines.record(away, bookie_service("10.0.0.1", 3181))
            writable = await client.metadata.bookies.writable()
            rules = await client.placement.rules(2, writable, ["a", away])
            assert rules.site(away).host == "10.0.0.1"
            for seed in range(20):
                assert replace_bookies(["a", away], [0], writable, random.Random(seed), (), rules)[0] == "c"

    asyncio.run(main())


@pytest.mark.parametrize("machine", ["10.0.0.1", "10.0.0.2"])
@pytest.mark.parametrize("has_cookie", [True, False])
def test_copies_share_a_machine_only_if_no_bookie_that_is_away_is_on_another_one(machine: str, has_cookie: bool) -> None:
    """A client that starts while the other machines are down saw only one, and put all copies of its ledgers there."""

    async def main() -> None:
        async with client_of(dict.fromkeys("abc", ("10.0.0.1", "")), ClientSettings()) as client:
            for name in "abcd" if has_cookie else "abc":
                await client.metadata.cookies.put(Cookie(name, "/j", ("/l",), client.metadata.instance_id))
            await client.metadata.machines.record("d", bookie_service(machine, 3181))
            # The record of a bookie without a cookie is left over: it was removed from the cluster.
            if machine == "10.0.0.1" or not has_cookie:
                (await client.create()).abandon()
                return
            with pytest.raises(NotEnoughBookies, match="different machines"):
                await client.create()
            (await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)).abandon()

    asyncio.run(main())


def test_a_machine_that_cannot_be_read_hinders_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with client_of({"a": ("10.0.0.0", ""), "b": ("10.0.0.1", "")}, ClientSettings()) as client:

            async def fail(machines: BookieMachines, bookie_id: str) -> BookieServiceInfo | None:
                raise ConnectionLost(f"no machine of {bookie_id}")

            monkeypatch.setattr(BookieMachines, "get", fail)
            rules = await client.placement.rules(2, await client.metadata.bookies.writable(), ["a", "gone"])
            assert rules.site("gone").host == "gone"

    asyncio.run(main())


def test_a_table_that_cannot_be_read_leaves_the_last_locations(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        bookies = {name: (name, "") for name in "abc"}
        async with client_of(bookies, ClientSettings(placement_policy="rack-aware")) as client:
            await client.metadata.network_locations.set("a", "/r")
            infos = await client.metadata.bookies.writable()
            assert str((await client.placement.locate(infos)).sites["a"].location) == "/default-region/r"

            async def fail(self: NetworkLocations) -> LocationTable:
                raise ConnectionLost("away")

            monkeypatch.setattr(NetworkLocations, "read", fail)
            client.placement._table_due = 0.0
            assert str((await client.placement.locate(infos)).sites["a"].location) == "/default-region/r"

    asyncio.run(main())


def test_a_table_that_was_never_read_is_a_problem_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Racks were taken as known, so that copies could be moved by wrong ones."""
    read = NetworkLocations.read

    async def fail(self: NetworkLocations) -> LocationTable:
        raise ConnectionLost("away")

    async def main() -> None:
        async with client_of({name: (name, "/r") for name in "ab"}, ClientSettings(placement_policy="rack-aware")) as client:
            infos = await client.metadata.bookies.writable()
            problems: list[tuple[str, ...]] = []
            for reading in (fail, read, fail):
                monkeypatch.setattr(NetworkLocations, "read", reading)
                client.placement._table_due = 0.0
                await client.placement.locate(infos)
                problems.append(client.placement.problems)
            assert problems == [("the table of racks could not be read: away",), (), ()]

    asyncio.run(main())


def test_free_disk_is_asked_once_in_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        asked: list[str] = []

        async def ask(self: FreeDisk, bookie_id: str) -> None:
            asked.append(bookie_id)
            self.free_bytes[bookie_id] = 5

        monkeypatch.setattr(FreeDisk, "_ask_one", ask)
        settings = ClientSettings(placement_disk_weight=True)
        async with client_of({name: (name, "") for name in "abc"}, settings) as client:
            for _ in range(3):
                (await client.create()).abandon()
                await asyncio.sleep(0.01)
            found = await client.placement.rules(3, await client.metadata.bookies.writable())
        assert asked == ["a", "b", "c"]
        assert {site.free_bytes for site in found.sites.values()} == {5}

    asyncio.run(main())


def test_copies_are_made_again_though_too_few_domains_are_left() -> None:
    async def main() -> None:
        bookies = {name: (name, "/x") for name in "abcd"}
        async with client_of(bookies, ClientSettings(placement_policy="rack-aware", placement_min_ack_domains=2)) as client:
            writable = await client.metadata.bookies.writable()
            for_writer, for_copies = [await client.placement.rules(3, writable, for_writer=each) for each in (True, False)]
            with pytest.raises(NotEnoughBookies, match="acknowledged in 2 racks"):
                replace_bookies("abc", [1], "abcd", random.Random(0), (), for_writer)
            assert replace_bookies("abc", [1], "abcd", random.Random(0), (), for_copies) == ("a", "d", "c")

    asyncio.run(main())


def test_the_policy_says_what_a_domain_is() -> None:
    found = [
        policy_of(ClientSettings(placement_policy=name, placement_min_ack_domains=3)) for name in ("uniform", "rack-aware", "region-aware")
    ]
    assert [policy.ack_domain for policy in found] == [FaultDomain.MACHINE, FaultDomain.RACK, FaultDomain.REGION]
    assert [(policy.min_racks, policy.min_regions) for policy in found] == [(1, 1), (3, 1), (2, 3)]
    assert policy_of(ClientSettings()) == UNIFORM
