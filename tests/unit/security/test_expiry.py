"""When certificates in files expire."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.certificates import DAY_S, CertificateFolder
from triplicate.config import SecuritySettings
from triplicate.errors import ConfigError
from triplicate.security import expiring_files


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
