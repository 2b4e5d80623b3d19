"""The answers of doctor and status about a bookie that never ran."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from triplicate.bookie import Bookie
from triplicate.cli.main import cli, one_line
from triplicate.cli.server_commands.doctor_command import examine
from triplicate.config import BookieSettings, to_toml
from triplicate.errors import EnvironmentFault
from triplicate.metadata import ClusterMetadata, Cookie, open_cluster
from triplicate.runtime import Host, real_host


class NewBookie:
    """A cluster, and settings of a bookie that it does not know."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.data = folder / "data"
        self.config = folder / "bookie.toml"
        self.uri = f"sqlite://{folder}/metadata.db"
        journals, ledgers = (str(self.data / "journal"),), (str(self.data / "deep" / "ledgers"),)
        common = {"bookie_id": "bookie-1", "port": 0, "journal_directories": journals, "ledger_directories": ledgers, **settings}
        self.settings = BookieSettings(**common)  # type: ignore[arg-type]
        self.config.write_text(to_toml({"bookie": common, "metadata": {"uri": self.uri}}), encoding="utf-8")

        async def nothing(host: Host, cluster: ClusterMetadata) -> None: ...

        self.with_cluster(nothing, create=True)

    def with_cluster(self, do: Callable[[Host, ClusterMetadata], object], *, create: bool = False) -> None:
        async def body() -> None:
            host = real_host("test")
            cluster = await open_cluster(self.uri, host, create=create)
            try:
                await do(host, cluster)  # type: ignore[misc]
            finally:
                await cluster.aclose()

        asyncio.run(body())

    def start_and_stop(self) -> None:
        async def body(host: Host, cluster: ClusterMetadata) -> None:
            bookie = await Bookie.start(host, self.settings, cluster)
            await bookie.stop()

        self.with_cluster(body)

    def wrong(self) -> list[str]:
        return [finding.text for finding in examine(str(self.config), {}) if finding.level == "wrong"]

    def status(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, ["bookie", "status", *arguments])


@pytest.fixture
def new(tmp_path: Path) -> NewBookie:
    return NewBookie(tmp_path)


@pytest.mark.parametrize("there", ["nothing", "the folder", "one directory", "empty directories"])
def test_all_is_well_with_directories_that_a_start_makes(new: NewBookie, there: str) -> None:
    if there == "the folder":
        new.data.mkdir()
    if there in ("one directory", "empty directories"):
        (new.data / "journal").mkdir(parents=True)
    if there == "empty directories":
        (new.data / "deep" / "ledgers" / "current").mkdir(parents=True)
    before = sorted(new.data.parent.rglob("*"))
    assert new.wrong() == []
    assert sorted(new.data.parent.rglob("*")) == before
    new.start_and_stop()
    assert new.wrong() == []


@pytest.mark.parametrize("in_the_way", ["all", "ledgers"])
def test_directories_that_cannot_be_made_are_refused_by_both_and_none_is_made(new: NewBookie, in_the_way: str) -> None:
    if in_the_way == "all":
        new.data.write_text("in the way")
    else:
        new.data.mkdir()
        (new.data / "deep").write_text("in the way")
    before = sorted(new.data.parent.rglob("*"))
    wrong = new.wrong()
    with pytest.raises(EnvironmentFault) as refused:
        new.start_and_stop()
    assert sorted(new.data.parent.rglob("*")) == before
    assert wrong[0] == one_line(refused.value)
    assert wrong == [
        f"{directory}: cannot be used (Not a directory): mount it, or make it writable for this user"
        for directory in (*(new.settings.journal_directories if in_the_way == "all" else ()), *new.settings.ledger_directories)
    ]


def test_directories_that_a_known_bookie_misses_are_told_once(new: NewBookie) -> None:
    async def know(host: Host, cluster: ClusterMetadata) -> None:
        settings = new.settings
        await cluster.cookies.put(
            Cookie("bookie-1", settings.journal_directories[0], settings.ledger_directories, cluster.instance_id), None
        )

    new.with_cluster(know)
    wrong = new.wrong()
    assert len(wrong) == 2
    assert all("it is not there, and bookie bookie-1 kept data in it" in text for text in wrong)


def test_status_names_the_bookies_there_are_where_it_is_asked_for_another(new: NewBookie) -> None:
    elsewhere = ("--metadata", new.uri, "--journal-directories", "none", "--ledger-directories", "none")
    unknown = new.status("--bookie-id", "bookie-9", *elsewhere)
    assert unknown.exit_code == 1
    assert "the cluster knows no bookie bookie-9: correct bookie.bookie_id; there are: none" in str(unknown.exception)
    new.start_and_stop()
    assert "there are: bookie-1" in str(new.status("--bookie-id", "bookie-9", *elsewhere).exception)
    known = new.status("--bookie-id", "bookie-1", *elsewhere)
    assert known.exit_code == 0
    assert "cookie" not in known.output


def test_status_says_that_the_cluster_does_not_know_whose_directories_are_there(new: NewBookie) -> None:
    (new.data / "journal" / "current").mkdir(parents=True)
    shown = new.status("--config", str(new.config))
    assert shown.exit_code == 0
    assert "no; the cluster has no cookie of it" in shown.output


@pytest.mark.parametrize("host", ["192.0.2.7", "no-such-host.invalid"])
def test_a_host_that_is_not_this_machine_is_refused_before_anything_is_made(tmp_path: Path, host: str) -> None:
    new = NewBookie(tmp_path, host=host)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(EnvironmentFault, match=f"bookie.host {host} is no address of this machine"):
        new.start_and_stop()
    assert sorted(tmp_path.rglob("*")) == before

    async def no_cookie(_: Host, cluster: ClusterMetadata) -> None:
        assert await cluster.cookies.get("bookie-1") is None

    new.with_cluster(no_cookie)
    (said,) = [text for text in new.wrong() if "bookie.host" in text]
    assert "bookie.advertised_address" in said
