"""``triplicate security``: what it writes, prints and refuses."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from triplicate.cli.main import main
from triplicate.config import SecuritySettings, load
from triplicate.security import TlsIdentity


class Ran:
    """One command that has ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["security", *arguments])
        self.code = ended.value.code
        self.out, self.error = capsys.readouterr()


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = str(tmp_path / "authority")
    assert Ran(capsys, "init", path, "--name", "our cluster").code == 0
    assert Ran(capsys, "issue", path, "bookie-1", "--host", "localhost", "--host", "::1", "--unit", "writers", "--days", "20").code == 0
    assert Ran(capsys, "issue", path, "reader").code == 0
    return path


def test_a_folder_is_shown_with_names_hosts_units_and_days(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = Ran(capsys, "show", folder, "--json")
    assert shown.code == 0
    found = {one["name"]: one for one in json.loads(shown.out)}
    assert list(found) == ["ca", "bookie-1", "reader"]
    assert (found["bookie-1"]["hosts"], found["bookie-1"]["units"]) == (["localhost", "::1"], ["writers"])
    assert 19.9 < found["bookie-1"]["expires_in_days"] <= 20
    assert {one["authority"] for one in found.values()} == {"our cluster"}
    assert (found["ca"]["is_authority"], found["reader"]["hosts"]) == (True, [])
    assert "PRIVATE" not in shown.out
    table = Ran(capsys, "show", folder)
    assert "server localhost ::1" in table.out
    assert "client reader" in table.out


def test_a_file_is_shown_with_all_its_certificates(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert Ran(capsys, "new-authority", folder, "--name", "another").code == 0
    shown = json.loads(Ran(capsys, "show", f"{folder}/ca.pem", "--json").out)
    assert [one["common_name"] for one in shown] == ["another", "our cluster"]


def test_a_certificate_that_cannot_be_used_ends_the_show_with_1(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(folder, "reader.key").unlink()
    shown = Ran(capsys, "show", folder)
    assert shown.code == 1
    assert "its key cannot be read" in shown.out


def test_only_certificates_that_expire_soon_are_renewed(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: Path(folder, name).read_bytes() for name in ("bookie-1.pem", "reader.pem", "reader.key")}
    done = Ran(capsys, "renew", folder, "--all", "--before", "30")
    assert done.code == 0
    assert "bookie-1.pem" in done.out
    assert "reader" not in done.out
    assert Path(folder, "bookie-1.pem").read_bytes() != before["bookie-1.pem"]
    assert Path(folder, "reader.key").read_bytes() == before["reader.key"]
    assert Ran(capsys, "renew", folder, "--all", "--before", "30").out == "nothing to renew\n"


def test_a_wrong_use_is_refused_with_the_remedy(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "give the NAME" in Ran(capsys, "renew", folder).error
    assert "security init" in Ran(capsys, "issue", str(tmp_path / "nowhere"), "x").error
    assert "nothing overwrites" in Ran(capsys, "init", folder).error
    assert "renew it" in Ran(capsys, "issue", folder, "reader").error
    assert "issue one with --host" in Ran(capsys, "settings", folder, "reader", "--for", "bookie").error
    assert "cannot be read" in Ran(capsys, "show", str(tmp_path / "nothing.pem")).error


@pytest.mark.parametrize("kind", ["bookie", "node", "autorecovery", "client"])
def test_the_printed_settings_open_an_identity(folder: str, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = Ran(capsys, "settings", folder, "bookie-1", "--for", kind)
    assert printed.code == 0
    table = tomllib.loads(printed.out)["security"]
    file = tmp_path / "security.toml"
    file.write_text("[security]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items()))
    settings = load((SecuritySettings,), file=str(file)).get(SecuritySettings)
    assert settings.key_file == f"{folder}/bookie-1.key"
    assert TlsIdentity(settings, Clock(), lambda kind, /, **facts: None) is not None  # type: ignore[arg-type]


class Clock:
    def monotonic(self) -> float:
        return 0.0
