"""The demonstration deletes what an earlier one made in its folder, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from triplicate.errors import ConfigError
from triplicate_demo import demo_command


class BegunError(Exception):
    """The demonstration has prepared its folder and goes to work."""


@pytest.fixture(autouse=True)
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(_: Path) -> None:
        raise BegunError

    monkeypatch.setattr(demo_command, "unpack", begin)


def refusal(folder: Path) -> str:
    """Why the demonstration does not begin in a folder; empty when it begins."""
    error = CliRunner().invoke(demo_command.demo, ["--dir", str(folder)]).exception
    if isinstance(error, BegunError):
        return ""
    assert isinstance(error, ConfigError), repr(error)
    return str(error)


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", ["changes/thesis.txt", "spark/conf/spark-defaults.conf", "checkpoint/model", "input/a.csv", "thesis.txt"])
def test_a_folder_with_other_files_is_refused_by_name_and_left_alone(tmp_path: Path, name: str) -> None:
    mine = tmp_path / name
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("years of work")
    assert f"{tmp_path} is not empty and was not made by the demonstration" in refusal(tmp_path)
    assert files(tmp_path) == {name: "years of work"}


def test_the_folder_of_a_cluster_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "cluster.json").write_text("{}")
    assert "was not made by the demonstration" in refusal(tmp_path)
    assert files(tmp_path) == {"cluster/cluster.json": "{}"}


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("data")
    assert "is a file; choose another --dir" in refusal(tmp_path / "x")
    assert files(tmp_path) == {"x": "data"}


def test_what_an_earlier_demonstration_left_is_deleted_and_its_input_kept(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    assert refusal(folder) == ""
    (folder / "work" / "changes").mkdir()
    (folder / "work" / "changes" / "part-0.parquet").write_text("old")
    (folder / "input").mkdir()
    (folder / "input" / "flights.csv").write_text("flights")
    assert refusal(folder) == ""
    assert not (folder / "work" / "changes").exists()
    assert (folder / "input" / "flights.csv").read_text() == "flights"


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert refusal(tmp_path) == ""


def test_a_demonstration_killed_at_any_step_of_its_start_can_be_started_again(tmp_path: Path) -> None:
    for step, left in enumerate((["lock"], ["lock", "demo.json.new"])):
        folder = tmp_path / str(step)
        folder.mkdir()
        for name in left:
            (folder / name).write_text("")
        assert refusal(folder) == ""
    folder = tmp_path / "1"
    marker = (folder / "work" / "demo.json").read_text()
    (folder / "work" / "demo.json").unlink()
    assert refusal(folder) == "", "killed before the work was marked"
    (folder / "work" / "demo.json").unlink()
    (folder / "work" / "demo.json.new").write_text(marker[:5])
    assert refusal(folder) == "", "killed while the work was being marked"


def test_a_work_folder_put_there_by_others_is_refused(tmp_path: Path) -> None:
    folder, other = tmp_path / "demo", tmp_path / "other"
    assert refusal(folder) == ""
    assert refusal(other) == ""
    (folder / "work" / "demo.json").write_text((other / "work" / "demo.json").read_text())
    (folder / "work" / "thesis.txt").write_text("years of work")
    assert f"{folder / 'work'} was not made by the demonstration" in refusal(folder)
    assert (folder / "work" / "thesis.txt").read_text() == "years of work"


def test_a_work_folder_that_is_a_link_is_refused_and_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "demo", tmp_path / "elsewhere"
    assert refusal(folder) == ""
    (folder / "work").rename(elsewhere)
    (elsewhere / "thesis.txt").write_text("years of work")
    (folder / "work").symlink_to(elsewhere)
    assert "was not made by the demonstration" in refusal(folder)
    assert (elsewhere / "thesis.txt").read_text() == "years of work"


def test_a_marker_of_another_version_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text(json.dumps({"v": 2, "kind": "triplicate demo", "id": "00"}))
    assert "was not made by the demonstration" in refusal(tmp_path)
