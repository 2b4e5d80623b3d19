"""``triplicate doctor``: reports problems that stop a bookie from starting or working well, with cause and remedy. Changes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import click

from triplicate.bookie import Inspection, bookie_id_of, door_report, port_problem
from triplicate.cli.main import one_line
from triplicate.cli.overview.cluster_sources import AddressesOf
from triplicate.cli.overview.core.certificate_expiry import expiry_problem
from triplicate.cli.overview.core.cluster_problems import open_nodes_text, shared_text
from triplicate.cli.overview.core.machine_names import shared_machines
from triplicate.cli.process.serving import run_loop
from triplicate.cli.server_commands.bookie_command import SECTIONS, bookie_options, bookie_process_gaps, metadata_uri, require_identity
from triplicate.cli.server_commands.bookie_status import certificate_text
from triplicate.cli.server_commands.file_modes import file_mode_findings
from triplicate.cli.server_commands.machine_checks import MachineWarning, machine_findings
from triplicate.cli.terminal.options import load_configuration, metadata_access
from triplicate.cli.terminal.output import print_json
from triplicate.config import BookieSettings, ClientSettings, Configuration, MetadataSettings, ProcessSettings, SecuritySettings
from triplicate.errors import TriplicateError
from triplicate.metadata import AclReport, ClusterMetadata, Cookie, Incarnation, NodeAcls, machine_of, open_cluster
from triplicate.runtime import Host, addresses_of, map_bounded, real_host
from triplicate.security import TlsIdentity, expiring_files, page_gaps

RESOLVED_AT_ONCE = 16

WRONG, REMARK = "wrong", "remark"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class DoctorFinding:
    """One reported problem or remark."""

    check: str
    """The check: settings, security, door, metadata, directories, data, port, machine."""
    level: str
    """``wrong``: stops the bookie from starting or from serving its entries; ``remark``: for information."""
    text: str
    """Place, problem, cause and remedy: the same line that a start prints."""


@click.command()
@bookie_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(config: str | None, flags: Mapping[str, object], as_json: bool) -> None:
    """Check a bookie's settings, certificates, disks, cookies, metadata, port and machine.

    Each problem is reported with its remedy.

    The options are those of `triplicate bookie`. Exit code 0: no problems; 1: problems found; 2: wrong usage.
    """
    if config is not None and not os.path.isfile(config):
        raise click.UsageError(f"--config {config}: there is no such file")
    findings = list(examine(config, flags))
    wrong = [finding for finding in findings if finding.level == WRONG]
    if as_json:
        print_json({"well": not wrong, "findings": [vars_of(finding) for finding in findings]})
    else:
        for finding in findings:
            click.echo(f"{finding.level}: {finding.text}")
        click.echo(f"{len(wrong)} wrong, {len(findings) - len(wrong)} to know" if findings else "all is well")
    sys.exit(1 if wrong else 0)


def vars_of(finding: DoctorFinding) -> dict[str, str]:
    return {"check": finding.check, "level": finding.level, "text": finding.text}


def examine(config: str | None, flags: Mapping[str, object]) -> Iterator[DoctorFinding]:
    """All findings, in the order of a start."""
    try:
        configuration = load_configuration(SECTIONS, config, flags)
        require_identity(configuration)
        bookie_id = bookie_id_of(configuration.get(BookieSettings))
    except TriplicateError as error:
        yield DoctorFinding("settings", WRONG, one_line(error))
        return
    yield from run_loop(_examine(configuration, bookie_id))


async def _examine(configuration: Configuration, bookie_id: str) -> list[DoctorFinding]:
    host = real_host("doctor")
    settings = configuration.get(BookieSettings)
    findings = [DoctorFinding("settings", REMARK, text) for text in setting_remarks(settings)]
    findings += security_findings(configuration, host)
    known = {finding.text for finding in findings}
    door = door_findings(settings, configuration.get(SecuritySettings), host)
    findings += [finding for finding in door if finding.text not in known]
    cluster = None
    try:
        cluster = await _open(configuration, host)
    except (TriplicateError, OSError) as error:
        findings.append(DoctorFinding("metadata", WRONG, one_line(error)))
    try:
        findings += await _inspect(host, settings, bookie_id, cluster, configuration.get(MetadataSettings).uri)
    finally:
        if cluster is not None:
            await cluster.aclose()
    return findings


def security_findings(configuration: Configuration, host: Host) -> Iterator[DoctorFinding]:
    """Certificates and keys that cannot be used or soon expire, and pages that are not protected."""
    security, process = configuration.get(SecuritySettings), configuration.get(ProcessSettings)
    # The gaps include those of the pages, which need protection in any case where others reach them.
    for gap in bookie_process_gaps(configuration) if security.required else page_gaps(process, security):
        yield DoctorFinding("security", WRONG, gap)
    try:
        if TlsIdentity.open(security, host.clock, host.trace) is None:
            return
        files = list(expiring_files(security))
    except TriplicateError as error:
        yield DoctorFinding("security", WRONG, one_line(error))
        return
    now_s = host.clock.wall_us() / 1e6
    for each in files:
        expires_s = each.expires_s()
        problem = expiry_problem(expires_s, now_s)
        if problem:
            level = WRONG if expires_s <= now_s else REMARK
            yield DoctorFinding("security", level, f"{each.setting}: {each.path} {problem}: replace it; `triplicate security renew` does")


def door_findings(settings: BookieSettings, security: SecuritySettings, host: Host) -> Iterator[DoctorFinding]:
    """The protection of the door, or why the bookie would not start with it."""
    try:
        found = door_report(settings, security, host)
    except TriplicateError as error:
        yield DoctorFinding("door", WRONG, one_line(error))
        return
    if not found.is_open:
        yield DoctorFinding("door", REMARK, f"door: {found.summary}{certificate_text(found)}")
    elif settings.host not in LOOPBACK:
        yield DoctorFinding(
            "door", REMARK, f"door: every client that reaches {settings.host} may do everything, in clear; see docs/security.md"
        )


async def _open(configuration: Configuration, host: Host) -> ClusterMetadata:
    return await open_cluster(metadata_uri(configuration), host, access=metadata_access(host, configuration))


async def _inspect(host: Host, settings: BookieSettings, bookie_id: str, cluster: ClusterMetadata | None, uri: str) -> list[DoctorFinding]:
    findings: list[DoctorFinding] = []
    instance_id = cluster.instance_id if cluster is not None else ""
    inspection = Inspection(host, settings, bookie_id, instance_id)
    running = _running(inspection, settings)
    is_new = False
    if cluster is not None:
        try:
            cookie, incarnation = await cluster.cookies.get(bookie_id), await cluster.incarnations.get(bookie_id)
        except TriplicateError as error:
            findings.append(DoctorFinding("metadata", WRONG, one_line(error)))
        else:
            if not incarnation.visited:
                findings.append(DoctorFinding("metadata", REMARK, _unvisited(bookie_id, incarnation)))
            known = cookie[0] if cookie is not None else None
            is_new = known is None
            findings += [DoctorFinding("metadata", WRONG, text) for text in await _open_nodes(cluster, host)]
            findings += [DoctorFinding("machine", REMARK, text) for text in await shared_names(cluster, bookie_id, addresses_of)]
            problems = _problems(inspection, cluster, bookie_id, known, incarnation)
            findings += [DoctorFinding("directories", WRONG, one_line(error)) for error in problems]
    data: list[DoctorFinding] = []
    if cluster is not None and not running and not any(finding.check == "directories" for finding in findings):
        data += [DoctorFinding("data", WRONG, one_line(error)) for error in inspection.problems()]
        data += [DoctorFinding("data", REMARK, text) for text in inspection.remarks]
        data += [DoctorFinding("data", REMARK, text) for text in _trash(inspection)]
    findings += [DoctorFinding("directories", REMARK, text) for text in file_mode_findings(settings, uri)]
    seen = {finding.text for finding in findings}
    for each in machine_findings(settings, starts=not inspection.lacks_space, makes=is_new):
        if one_line(each) not in seen:
            findings.append(DoctorFinding("machine", REMARK if isinstance(each, MachineWarning) else WRONG, one_line(each)))
    if running:
        findings.append(DoctorFinding("directories", REMARK, f"{running}: a bookie runs on it, so its data and port were not checked"))
        return findings
    port = await port_problem(host, settings)
    if port is not None:
        findings.append(DoctorFinding("port", WRONG, one_line(port)))
    return findings + data


async def shared_names(cluster: ClusterMetadata, bookie_id: str, resolve: AddressesOf) -> list[str]:
    """The other names under which the machine of a registered bookie is registered; nothing if the metadata cannot be read."""
    try:
        infos = (await cluster.bookies.registered()).infos
    except TriplicateError:
        return []
    if bookie_id not in infos:
        return []
    own = machine_of(bookie_id, infos[bookie_id])
    hosts = sorted({machine_of(name, info) for name, info in infos.items()})
    found = await map_bounded(lambda host: _addresses(resolve, host), hosts, most=RESOLVED_AT_ONCE, name="addresses of machines")
    return [shared_text(names) for names in shared_machines(dict(zip(hosts, found, strict=True))) if own in names]


async def _addresses(resolve: AddressesOf, host: str) -> Sequence[str]:
    return await resolve(host)


async def _open_nodes(cluster: ClusterMetadata, host: Host) -> list[str]:
    acls = await NodeAcls.of(cluster, host)
    found = await acls.sample() if acls is not None else AclReport()
    if not found.open:
        return []
    return [f"{open_nodes_text(found.open, found.nodes, found.example_open)}; run triplicate cluster secure-metadata"]


def _problems(
    inspection: Inspection, cluster: ClusterMetadata, bookie_id: str, known: Cookie | None, incarnation: Incarnation
) -> Sequence[TriplicateError]:
    ours = inspection.directories.cookie(cluster, bookie_id)
    return list(inspection.directories.problems(ours, known, incarnation.number))


def _trash(inspection: Inspection) -> Iterator[str]:
    """The space of deleted ledgers in the trash; nothing if it cannot be read, which another check reports."""
    try:
        index = inspection.facts().index
    except (TriplicateError, OSError):
        return
    if index is not None and index.trash_ledgers:
        yield (
            f"{index.path}: {index.trash_ledgers} deleted ledgers of {index.trash_bytes} bytes are in the trash: their space is freed "
            "when bookie.trash_period_s is over"
        )


def _unvisited(bookie_id: str, incarnation: Incarnation) -> str:
    return (
        f"bookie {bookie_id} is in incarnation {incarnation.number} and not visited: for ledgers from before it answers unknown; "
        f"have them copied back with `triplicate bookie refill {bookie_id}`"
    )


def _running(inspection: Inspection, settings: BookieSettings) -> str | None:
    """A directory that a process uses, or None. Another check reports unreadable directories."""
    for directory in inspection.directories.configured:
        try:
            if inspection.in_use(directory):
                return directory
        except OSError:
            continue
    return None


def setting_remarks(settings: BookieSettings) -> Iterator[str]:
    """Remarks about allowed settings that do not fit together."""
    if settings.disk_usage_low_water > settings.disk_usage_threshold:
        yield (
            f"bookie.disk_usage_low_water is {settings.disk_usage_low_water}, above bookie.disk_usage_threshold "
            f"{settings.disk_usage_threshold}: a full disk would count as free again at once; lower it"
        )
    if settings.frame_limit_bytes < ClientSettings().frame_limit_bytes:
        yield "bookie.frame_limit_bytes is below the clients' default: lower theirs as well, or it refuses large records"
