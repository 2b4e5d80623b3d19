"""The doctor on certificates, keys and pages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.certificates import DAY_S, CertificateFolder
from triplicate.cli.server_commands.bookie_command import SECTIONS
from triplicate.cli.server_commands.doctor_command import REMARK, WRONG, DoctorFinding, security_findings
from triplicate.config import SecuritySettings, load
from triplicate.runtime import real_host


def findings(settings: SecuritySettings, **process: object) -> list[DoctorFinding]:
    flags: dict[str, object] = {f"security.{name}": getattr(settings, name) or None for name in ("ca_file", "certificate_file", "key_file")}
    flags |= {f"process.{name}": value for name, value in process.items()}

    async def body() -> list[DoctorFinding]:
        return list(security_findings(load(SECTIONS, flags=flags), real_host("doctor")))

    return asyncio.run(body())


@pytest.fixture
def folder(tmp_path: Path) -> CertificateFolder:
    return CertificateFolder(tmp_path, valid_s=100 * DAY_S)


def test_a_process_without_certificates_or_with_good_ones_is_well(folder: CertificateFolder) -> None:
    assert findings(SecuritySettings()) == []
    assert findings(folder.settings("server", valid_s=20 * DAY_S)) == []


def test_a_certificate_that_expires_within_two_weeks_is_named_with_the_remedy(folder: CertificateFolder) -> None:
    settings = folder.settings("server", valid_s=10 * DAY_S)
    (found,) = findings(settings)
    assert found.level == REMARK
    assert found.text.startswith(f"security.certificate_file: {settings.certificate_file} expires in 10 days: replace it")
    (found,) = findings(folder.settings("server", valid_s=DAY_S, made_s_ago=5 * DAY_S))
    assert found.level == WRONG
    assert "expired 4 days ago" in found.text


def test_an_authority_that_expires_soon_is_named_too(tmp_path: Path) -> None:
    settings = CertificateFolder(tmp_path / "short").settings("server", valid_s=DAY_S)
    assert [found.text.split()[0] for found in findings(settings)] == ["security.ca_file:", "security.certificate_file:"]


def test_files_that_cannot_be_used_are_wrong(folder: CertificateFolder) -> None:
    settings = folder.settings("server")
    Path(settings.key_file).chmod(0o644)
    (found,) = findings(settings)
    assert (found.level, "chmod 600" in found.text) == (WRONG, True)
    Path(settings.key_file).unlink()
    assert findings(settings)[0].level == WRONG


def test_pages_that_others_reach_without_protection_are_wrong(folder: CertificateFolder) -> None:
    found = findings(folder.settings("server", valid_s=20 * DAY_S), metrics_host="0.0.0.0")
    assert [one.level for one in found] == [WRONG, WRONG]
    assert "process.metrics_tls" in found[0].text
    assert "process.metrics_token_file" in found[1].text
