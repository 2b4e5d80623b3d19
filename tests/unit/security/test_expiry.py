"""When certificates expire, and when that is a problem."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.certificates import DAY_S, CertificateFolder
from triplicate.config import SecuritySettings
from triplicate.errors import ConfigError
from triplicate.security import expiring_files, expiry_problem


def test_the_first_certificate_of_a_file_to_expire_counts_and_renewals_are_seen(tmp_path: Path) -> None:
    now = time.time()
    folder = CertificateFolder(tmp_path)
    settings = folder.settings("server", valid_s=2 * DAY_S)
    authority, certificate = expiring_files(settings)
    assert authority.setting == "security.ca_file"
    assert certificate.expires_s() == pytest.approx(now + 2 * DAY_S, abs=60)
    assert authority.expires_s() == pytest.approx(now + 10 * DAY_S, abs=60)
    folder.settings("server", valid_s=5 * DAY_S)
    assert certificate.expires_s() == pytest.approx(now + 5 * DAY_S, abs=60)
    with open(settings.certificate_file, "ab") as stream:
        stream.write(folder.authority.issue("intermediate", (), now, DAY_S).certificate_pem)
    assert certificate.expires_s() == pytest.approx(now + DAY_S, abs=60)


def test_a_file_that_is_being_replaced_keeps_its_last_time(tmp_path: Path) -> None:
    settings = CertificateFolder(tmp_path).settings("server", valid_s=2 * DAY_S)
    _, certificate = expiring_files(settings)
    before = certificate.expires_s()
    Path(settings.certificate_file).write_text("half")
    assert certificate.expires_s() == before
    with pytest.raises(ConfigError, match=r"security\.certificate_file: .*server\.pem: this is no certificate"):
        list(expiring_files(settings))
    Path(settings.certificate_file).unlink()
    assert certificate.expires_s() == before
    with pytest.raises(ConfigError, match="No such file"):
        list(expiring_files(settings))
    assert list(expiring_files(SecuritySettings())) == []


@pytest.mark.parametrize(
    ("days", "problem"),
    [
        (400, ""),
        (14, ""),
        (13.9, "expires in 14 days"),
        (2, "expires in 2 days"),
        (1, "expires in 24 hours"),
        (0, "has expired"),
        (-0.5, "has expired"),
        (-3, "expired 3 days ago"),
    ],
)
def test_an_expiry_within_two_weeks_is_a_problem(days: float, problem: str) -> None:
    assert expiry_problem(1e9 + days * DAY_S, 1e9) == problem
