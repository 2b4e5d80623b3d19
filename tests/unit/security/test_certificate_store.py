"""The folder of an authority: what is issued, renewed and replaced, and by whom it can be read."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from triplicate.config import SecuritySettings
from triplicate.errors import ConfigError
from triplicate.security import CertificateStore, ClientCertificates, TlsIdentity

NOW = 1_800_000_000.0
DAY_S = 86_400.0


@pytest.fixture
def store(tmp_path: Path) -> CertificateStore:
    return CertificateStore.create(str(tmp_path / "certificates"), "cluster one", NOW)


@pytest.fixture(autouse=True)
def open_mask() -> Iterator[None]:
    """The mask under which files are made that everybody can read."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: str) -> dict[str, int]:
    return {name: stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in os.listdir(folder)}


def test_only_the_owner_can_read_what_the_store_writes(store: CertificateStore) -> None:
    store.issue("bookie-1", ("localhost",), NOW)
    store.renew("bookie-1", NOW)
    store.add_authority("cluster one", NOW)
    assert modes(store.folder) == dict.fromkeys(("ca.pem", "ca.key", "bookie-1.pem", "bookie-1.key"), 0o600)
    assert stat.S_IMODE(os.stat(store.folder).st_mode) == 0o700


def test_a_folder_with_an_authority_or_other_files_is_not_overwritten(store: CertificateStore, tmp_path: Path) -> None:
    before = (Path(store.folder) / "ca.key").read_bytes()
    with pytest.raises(ConfigError, match="nothing overwrites"):
        CertificateStore.create(store.folder, "another", NOW)
    assert (Path(store.folder) / "ca.key").read_bytes() == before
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").touch()
    with pytest.raises(ConfigError, match="not an empty folder"):
        CertificateStore.create(str(tmp_path / "full"), "another", NOW)
    with pytest.raises(ConfigError, match="security init"):
        CertificateStore(str(tmp_path / "full"))


def test_an_issued_certificate_has_its_names_units_and_time(store: CertificateStore) -> None:
    issued = store.issue("bookie-1", ("localhost", "127.0.0.1"), NOW, days=30, units=("writers", "readers"))
    assert (issued.name, issued.problem) == ("bookie-1", "")
    facts = issued.facts
    assert (facts.common_name, facts.hosts, facts.units, facts.issuer) == (
        "bookie-1",
        ("localhost", "127.0.0.1"),
        ("writers", "readers"),
        "cluster one",
    )
    assert facts.expires_s == NOW + 30 * DAY_S
    assert store.names() == ["bookie-1"]


def test_a_name_that_is_taken_or_no_files_is_refused(store: CertificateStore) -> None:
    store.issue("bookie-1", (), NOW)
    with pytest.raises(ConfigError, match="renew it"):
        store.issue("bookie-1", (), NOW)
    for name in ("ca", "../bookie", ".hidden", "", "a/b", "x" * 65, "-x"):
        with pytest.raises(ConfigError, match="cannot name a certificate"):
            store.issue(name, (), NOW)
    with pytest.raises(ConfigError, match="it has bookie-1"):
        store.renew("bookie-2", NOW)


def test_a_renewed_certificate_keeps_its_names_and_gets_another_key(store: CertificateStore) -> None:
    old = store.issue("bookie-1", ("localhost",), NOW, days=30, units=("writers",)).facts
    old_key = Path(store.key_path("bookie-1")).read_bytes()
    new = store.renew("bookie-1", NOW + 20 * DAY_S, days=30)
    assert new.problem == ""
    assert (new.facts.common_name, new.facts.hosts, new.facts.units) == (old.common_name, old.hosts, old.units)
    assert new.facts.expires_s == NOW + 50 * DAY_S
    assert Path(store.key_path("bookie-1")).read_bytes() != old_key


def test_a_failure_while_a_certificate_is_renewed_leaves_the_old_one(store: CertificateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.issue("bookie-1", ("localhost",), NOW)
    before = {name: (Path(store.folder) / name).read_bytes() for name in os.listdir(store.folder)}
    calls = 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("triplicate.security.secret_files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.renew("bookie-1", NOW)
    assert {name: (Path(store.folder) / name).read_bytes() for name in os.listdir(store.folder)} == before


def test_problems_of_stored_certificates_are_named(store: CertificateStore, tmp_path: Path) -> None:
    for name in ("late", "strange", "foreign", "keyless"):
        store.issue(name, ("localhost",), NOW, days=30)
    Path(store.key_path("strange")).write_bytes(Path(store.key_path("late")).read_bytes())
    Path(store.key_path("keyless")).unlink()
    other = CertificateStore.create(str(tmp_path / "other"), "cluster one", NOW)
    other.issue("foreign", ("localhost",), NOW, days=30)
    for path in (other.certificate_path("foreign"), other.key_path("foreign")):
        (Path(store.folder) / os.path.basename(path)).write_bytes(Path(path).read_bytes())
    assert "expired" in store.certificate("late", NOW + 31 * DAY_S).problem
    assert "another certificate" in store.certificate("strange", NOW).problem
    assert "not trusted here" in store.certificate("foreign", NOW).problem
    assert "cannot be read" in store.certificate("keyless", NOW).problem
    assert store.certificate("late", NOW).problem == ""


def test_an_authority_is_replaced_in_three_steps(store: CertificateStore) -> None:
    store.issue("one", ("localhost",), NOW)
    old = store.authorities()[0]
    new = store.add_authority("cluster one", NOW + DAY_S)
    assert store.authorities() == [new, old]
    assert store.certificate("one", NOW).problem == ""
    with pytest.raises(ConfigError, match=r"one of .* are signed by an older authority"):
        store.retire_authorities()
    store.renew("one", NOW + DAY_S)
    assert store.retire_authorities() == [old]
    assert store.authorities() == [new]
    assert store.certificate("one", NOW + DAY_S).problem == ""
    assert store.retire_authorities() == []


def test_an_authority_that_expired_or_lost_its_key_signs_nothing(store: CertificateStore) -> None:
    with pytest.raises(ConfigError, match="has expired"):
        store.issue("one", (), NOW + 4000 * DAY_S)
    Path(store.key_path("ca")).unlink()
    with pytest.raises(ConfigError, match=r"no ca\.key"):
        store.issue("one", (), NOW)


def test_a_running_process_takes_a_renewed_certificate_up(store: CertificateStore) -> None:
    now = time.time()
    store.add_authority("cluster one", now)
    store.issue("one", ("localhost",), now)
    settings = SecuritySettings(
        ca_file=store.certificate_path("ca"), certificate_file=store.certificate_path("one"), key_file=store.key_path("one")
    )
    clock = SteppedClock()
    traced: list[str] = []
    identity = TlsIdentity(settings, clock, lambda kind, /, **facts: traced.append(kind))  # type: ignore[arg-type]
    before = identity.server_context(ClientCertificates.NONE)
    store.renew("one", now)
    assert identity.server_context(ClientCertificates.NONE) is before
    clock.now += settings.reload_interval_s
    assert identity.server_context(ClientCertificates.NONE) is not before
    assert traced == ["security.certificate_renewed"]


class SteppedClock:
    """A clock that the test moves."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now
