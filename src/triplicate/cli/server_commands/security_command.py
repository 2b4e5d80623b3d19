"""``triplicate security``: an authority in a folder, certificates for servers and clients, and the settings for them."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from triplicate.cli.supervision.secured_folder import ADMINISTRATOR
from triplicate.cli.terminal.extras import require
from triplicate.cli.terminal.options import FiniteRange
from triplicate.cli.terminal.output import print_json, print_table
from triplicate.config import (
    CONFIG_VARIABLE,
    AutorecoverySettings,
    BookieSettings,
    ClientSettings,
    MetadataSettings,
    NodeSettings,
    ProcessSettings,
    SecuritySettings,
    all_sections,
    load,
    to_toml,
)
from triplicate.errors import ConfigError
from triplicate.security import (
    CertificateFacts,
    CertificateStore,
    StoredCertificate,
    facts_of,
    gaps_of_bookie,
    gaps_of_client,
    gaps_of_node,
    split_certificates,
)

DAY_S = 86_400.0
days_option = click.option(
    "--days", type=FiniteRange(0.01, 36_500), default=365, show_default=True, help="How long it is valid; not beyond the authority."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
PROCESSES = ("bookie", "node", "autorecovery", "client")


@click.group()
def security() -> None:
    """Make an authority, issue and renew certificates, and show when they expire.

    docs/security.md describes what each door of the cluster asks for. Keys lie in files that only their owner may read; processes read
    renewed files by themselves.
    """
    require("this command", "triplicate[security]", ("cryptography",))


@security.command("init")
@click.argument("folder", metavar="DIR")
@click.option("--name", default="triplicate", show_default=True, help="Common name of the authority.")
@click.option("--days", type=FiniteRange(1, 36_500), default=3650, show_default=True, help="How long the authority is valid.")
def init(folder: str, name: str, days: float) -> None:
    """Make a certificate authority in the new folder DIR.

    DIR/ca.pem is what every process trusts. DIR/ca.key signs certificates: keep it where only this command is run. Nothing is overwritten.
    """
    store = CertificateStore.create(folder, name, time.time(), days)
    click.echo(f"{store.certificate_path('ca')}: authority {name}, until {_date(store.authorities()[0].expires_s)}")
    click.echo(f"next: triplicate security issue {folder} NAME --host HOST")


@security.command("issue")
@click.argument("folder", metavar="DIR")
@click.argument("name", metavar="NAME")
@click.option(
    "--host", "hosts", multiple=True, help="Name or address at which clients reach the server; repeat it. None: for a client only."
)
@click.option("--unit", "units", multiple=True, help="Organisational unit, such as a role; repeat it.")
@days_option
def issue(folder: str, name: str, hosts: tuple[str, ...], units: tuple[str, ...], days: float) -> None:
    """Make the certificate DIR/NAME.pem and its key DIR/NAME.key, for a server or a client."""
    store = CertificateStore(folder)
    issued = store.issue(name, hosts, time.time(), days=days, units=units)
    click.echo(f"{store.certificate_path(name)}: {_what(issued.facts)}, until {_date(issued.facts.expires_s)}")
    click.echo(f"its settings: triplicate security settings {folder} {name}")


@security.command("renew")
@click.argument("folder", metavar="DIR")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--all", "all_of_them", is_flag=True, help="Renew every certificate of the folder.")
@click.option("--before", "before_days", type=FiniteRange(0, 36_500), metavar="DAYS", help="Only those that expire within DAYS.")
@days_option
def renew(folder: str, name: str | None, all_of_them: bool, before_days: float | None, days: float) -> None:
    """Replace certificates by ones with the same names and new keys.

    Running processes use the new files within `security.reload_interval_s`, without a restart. Run it daily with --all --before 30.
    """
    if (name is None) == (not all_of_them):
        raise click.UsageError("give the NAME of one certificate, or --all")
    store, now_s = CertificateStore(folder), time.time()
    renewed = 0
    for each in store.names() if name is None else [name]:
        if before_days is not None and store.certificate(each, now_s).facts.expires_s > now_s + before_days * DAY_S:
            continue
        new = store.renew(each, now_s, days=days)
        renewed += 1
        click.echo(f"{store.certificate_path(each)}: until {_date(new.facts.expires_s)}")
    if not renewed:
        click.echo("nothing to renew")


@security.command("new-authority")
@click.argument("folder", metavar="DIR")
@click.option("--name", default="triplicate", show_default=True, help="Common name of the authority.")
@click.option("--days", type=FiniteRange(1, 36_500), default=3650, show_default=True, help="How long the authority is valid.")
def new_authority(folder: str, name: str, days: float) -> None:
    """Make a new authority that signs from now on; the ones before stay trusted.

    The first of three steps without an outage. Then copy DIR/ca.pem to every process and wait until all have read it
    (`security.reload_interval_s`), renew all certificates, and end with `retire-authorities`.
    """
    made = CertificateStore(folder).add_authority(name, time.time(), days)
    click.echo(f"{os.path.join(folder, 'ca.pem')}: authority {made.common_name}, until {_date(made.expires_s)}, and those before it")
    click.echo("next, once every process has the file: triplicate security renew --all; triplicate security retire-authorities")


@security.command("retire-authorities")
@click.argument("folder", metavar="DIR")
def retire_authorities(folder: str) -> None:
    """End the trust in all authorities but the one that signs.

    Refused while a certificate in the folder is signed by an older one. Then copy DIR/ca.pem to every process.
    """
    retired = CertificateStore(folder).retire_authorities()
    click.echo("\n".join(f"no longer trusted: {one.common_name} ({one.fingerprint[:16]})" for one in retired) or "there was none to retire")


@security.command("show")
@click.argument("place", metavar="DIR|FILE")
@json_option
def show(place: str, as_json: bool) -> None:
    """Show the certificates of a folder or a file: names, hosts, units, days until they expire, and the authority.

    Exit code 0: all can be used. 1: one is expired, or its key is missing or another's.
    """
    now_s = time.time()
    found = list(_stored(place, now_s))
    if as_json:
        print_json([_facts(one, now_s) for one in found])
    else:
        rows = [
            (one.name, _what(one.facts), " ".join(one.facts.units), _days(one.facts, now_s), one.facts.issuer, one.problem or "well")
            for one in found
        ]
        print_table(("name", "for", "units", "days", "authority", "state"), rows, right=("days",), title=place)
    if any(one.problem for one in found):
        raise SystemExit(1)


def _stored(place: str, now_s: float) -> Iterable[StoredCertificate]:
    if os.path.isdir(place):
        store = CertificateStore(place)
        for facts in store.authorities():
            yield StoredCertificate("ca", facts, _expired(facts, now_s))
        for name in store.names():
            yield store.certificate(name, now_s)
        return
    try:
        with open(place, "rb") as stream:
            pem = stream.read()
    except OSError as error:
        raise ConfigError(f"{place} cannot be read: {error.strerror}") from None
    try:
        certificates = split_certificates(pem)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None
    for each in certificates:
        facts = facts_of(each)
        yield StoredCertificate(os.path.basename(place), facts, _expired(facts, now_s))


@security.command("convert")
@click.argument("folder", metavar="DIR")
def convert(folder: str) -> None:
    """Secure the local cluster in DIR, which `triplicate up` made open. It must be stopped.

    Data and settings stay. Each settings file from before is kept beside the new one, with the ending .open.
    """
    from triplicate.cli.supervision.folder_conversion import convert_folder

    converted = convert_folder(Path(folder))
    click.echo(f"{converted.path} is secured; start it with `triplicate up --dir {folder}`, then:")
    click.echo(f"  export {CONFIG_VARIABLE}={converted.security.client_file}")
    password = converted.security.password_file(ADMINISTRATOR)
    click.echo(f"  for each database: triplicate database administrator NAME {ADMINISTRATOR} --password-file {password}")
    if converted.zookeeper is not None:
        click.echo("  triplicate cluster secure-metadata")


@security.command("settings")
@click.argument("folder", metavar="DIR")
@click.argument("name", metavar="NAME")
@click.option("--for", "kind", type=click.Choice(PROCESSES), help="Kind of process. Default: a client.", default="client")
def settings(folder: str, name: str, kind: str) -> None:
    """Print the settings of a process that uses the certificate NAME, as TOML for its --config file.

    A comment names the settings that are missing before security.required can be set.
    """
    store = CertificateStore(folder)
    stored = store.certificate(name, time.time())
    if stored.problem:
        raise ConfigError(f"{store.certificate_path(name)}: {stored.problem}")
    if kind in ("bookie", "node") and not stored.facts.hosts:
        raise ConfigError(f"{store.certificate_path(name)} names no host, so no client would accept it; issue one with --host")
    tables = settings_tables(store, name, kind)
    missing = "".join(f"\nfor security.required: {gap}" for gap in missing_in(tables, kind))
    click.echo(to_toml(tables, comment=f"TLS of the {kind} {name}; see docs/security.md.{missing}"), nl=False)


def settings_tables(store: CertificateStore, name: str, kind: str) -> dict[str, dict[str, object]]:
    """The tables of a TOML file that make a process use a certificate at its door and to bookies.

    Args:
        kind: one of `PROCESSES`.
    """
    files = {
        "ca_file": os.path.abspath(store.certificate_path("ca")),
        "certificate_file": os.path.abspath(store.certificate_path(name)),
        "key_file": os.path.abspath(store.key_path(name)),
    }
    door: dict[str, dict[str, object]] = {kind: {"tls": "required"}} if kind in ("bookie", "node") else {}
    return {**door, "security": dict(files), "client": {"bookie_tls": "required"}}


def missing_in(tables: Mapping[str, Mapping[str, object]], kind: str) -> list[str]:
    """The gaps of a process with these settings alone, apart from its access to ZooKeeper."""
    flags = {f"{section}.{key}": value for section, table in tables.items() for key, value in table.items()}
    found = load(tuple(all_sections().values()), flags=flags)
    client, security = found.get(ClientSettings), found.get(SecuritySettings)
    metadata, process = found.get(MetadataSettings), found.get(ProcessSettings)
    if kind == "bookie":
        return list(gaps_of_bookie(found.get(BookieSettings), found.get(AutorecoverySettings), metadata, client, process, security))
    if kind == "node":
        return list(gaps_of_node(found.get(NodeSettings), metadata, client, process, security))
    return list(gaps_of_client(metadata, client, security))


def _facts(one: StoredCertificate, now_s: float) -> Mapping[str, Any]:
    facts = one.facts
    return {
        "name": one.name,
        "common_name": facts.common_name,
        "hosts": list(facts.hosts),
        "units": list(facts.units),
        "expires_at": _date(facts.expires_s),
        "expires_in_days": round((facts.expires_s - now_s) / DAY_S, 2),
        "authority": facts.issuer,
        "is_authority": facts.is_authority,
        "fingerprint_sha256": facts.fingerprint,
        "problem": one.problem,
    }


def _what(facts: CertificateFacts) -> str:
    if facts.is_authority:
        return f"authority {facts.common_name}"
    return f"server {' '.join(facts.hosts)}" if facts.hosts else f"client {facts.common_name}"


def _expired(facts: CertificateFacts, now_s: float) -> str:
    return "expired" if facts.expires_s <= now_s else ""


def _days(facts: CertificateFacts, now_s: float) -> str:
    return f"{(facts.expires_s - now_s) / DAY_S:.0f}"


def _date(time_s: float) -> str:
    return f"{datetime.datetime.fromtimestamp(time_s, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
