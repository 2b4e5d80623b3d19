"""A bookie that is to be secure without what it needs does not start, and a flood of refusals does not flood its log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import DAY_S, CertificateFolder
from tests.unit.bookie.server.door_rig import door_settings, write_all
from tests.unit.client.cluster import run
from triplicate.bookie import door_report
from triplicate.bookie.server.door import TRACES_PER_S, Door
from triplicate.bookie.server.door_metrics import DoorMetrics
from triplicate.bookie.server.door_policy import DoorPolicy
from triplicate.config import SecuritySettings
from triplicate.errors import ConfigError
from triplicate.runtime import Host, real_host


def broken_key(folder: CertificateFolder) -> SecuritySettings:
    settings = folder.settings("bookie")
    Path(settings.key_file).write_text("no key")
    return settings


def open_key(folder: CertificateFolder) -> SecuritySettings:
    settings = folder.settings("bookie")
    Path(settings.key_file).chmod(0o644)
    return settings


@pytest.mark.parametrize(
    ("settings", "security", "named"),
    [
        ({"tls": "required"}, lambda folder: SecuritySettings(), r"security\.ca_file"),
        ({"tls": "required"}, broken_key, r"security\.certificate_file"),
        ({"tls": "required"}, open_key, r"security\.key_file: .*chmod 600"),
        ({"tls": "required"}, lambda folder: replace(folder.settings("b"), ca_file="/nowhere"), r"/nowhere"),
        ({"authentication": "sasl", "users_file": "/nowhere"}, lambda folder: SecuritySettings(), r"bookie\.users_file: /nowhere"),
    ],
    ids=["no authority", "no key", "a key that others may read", "no file", "no users"],
)
def test_a_bookie_without_what_it_needs_does_not_start(
    tmp_path: Path, settings: dict[str, Any], security: Callable[[CertificateFolder], SecuritySettings], named: str
) -> None:
    async def body() -> None:
        host = real_host("door")
        chosen, identity = door_settings(tmp_path, **settings), security(CertificateFolder(tmp_path / "certificates"))
        with pytest.raises(ConfigError, match=named):
            Door.open(host, chosen, identity)
        with pytest.raises(ConfigError, match=named):
            door_report(chosen, identity, host)

    run(body())


def test_the_report_shows_what_is_on_and_when_the_certificate_expires(tmp_path: Path) -> None:
    async def body() -> None:
        users = tmp_path / "users.toml"
        write_all(users)
        settings = door_settings(tmp_path, tls="required", authentication="sasl", users_file=str(users))
        report = door_report(settings, CertificateFolder(tmp_path).settings("bookie", valid_s=2 * DAY_S), real_host("door"))
        assert report.summary == "TLS required, authentication by users (5 users)"
        assert not report.is_open
        assert report.certificate_days == pytest.approx(2.0, abs=0.1)
        assert report.mechanisms == settings.mechanisms
        assert door_report(door_settings(tmp_path), SecuritySettings(), real_host("door")).is_open

    run(body())


def test_the_delay_of_logins_doubles_up_to_half_the_time_for_a_login() -> None:
    async def body() -> None:
        settings = door_settings(Path("/"), authentication_timeout_s=2.0)
        door = Door(real_host("door"), settings, DoorPolicy.of(settings, SecuritySettings()), DoorMetrics(None), None, None, None)
        delays = []
        for number in range(8):
            delays.append(door.login_delay_s("2001:db8::1"))
            door.failed_logins.count(f"2001:db8::{number:x}", door.host.clock.monotonic())
        # Less what is forgiven while the test runs.
        assert delays == pytest.approx([0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0], rel=0.1)
        assert door.login_delay_s("2001:db8:0:1::1") == 0.0

    run(body())


def test_traces_of_refusals_are_limited_and_the_others_counted() -> None:
    async def body() -> None:
        facts: list[dict[str, object]] = []
        host: Host = real_host("door", trace=lambda kind, /, **found: facts.append(found))
        settings = door_settings(Path("/"))
        door = Door(host, settings, DoorPolicy.of(settings, SecuritySettings()), DoorMetrics(None), None, None, None)
        for number in range(10 * TRACES_PER_S):
            door.refuse("a reason", f"peer {number}")
        assert TRACES_PER_S <= len(facts) < 3 * TRACES_PER_S
        passed_over = sum(int(str(each.get("passed_over", 0))) for each in facts)
        assert len(facts) + passed_over <= 10 * TRACES_PER_S
        assert door.metrics.refused_logins.labels("a reason")._value.get() == 10 * TRACES_PER_S

    run(body())
