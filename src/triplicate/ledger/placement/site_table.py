"""The sites of bookies from all sources of locations: the table in the metadata, the client's script, the bookies' registrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from triplicate.errors import ArgumentError
from triplicate.ledger.placement.network_location import DEFAULT_LOCATION, BookieSite, NetworkLocation, parse_location

TABLE = "table"
SCRIPT = "script"
REGISTRATION = "registration"
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class RegisteredBookie:
    """The site of a bookie by its registration.

    Attributes:
        host: its machine, as clients address it.
        location: the network location that it publishes; empty without one.
    """

    bookie_id: str
    host: str
    location: str = ""


@dataclass(frozen=True, slots=True)
class SiteTable:
    """The sites of bookies.

    Attributes:
        sources: by bookie id: `TABLE`, `SCRIPT`, `REGISTRATION` or `DEFAULT`.
        problems: locations that could not be used, with the reason. The default location was used instead.
    """

    sites: Mapping[str, BookieSite]
    sources: Mapping[str, str]
    problems: tuple[str, ...] = ()


def resolve_sites(
    bookies: Iterable[RegisteredBookie],
    table: Mapping[str, str] | None = None,
    scripted: Mapping[str, str] | None = None,
    free_bytes: Mapping[str, int] | None = None,
) -> SiteTable:
    """The sites of these bookies.

    An entry of the table for the bookie comes first, then one for its machine, then the script's answer for its machine, then its
    registration. All bookies of a machine are at one location: one with a location gives it to the others, and different ones contradict
    each other.

    Args:
        table: locations by bookie id or machine.
        scripted: locations by machine.
        free_bytes: free disk by bookie id, where it is known.
    """
    table, scripted, free_bytes = table or {}, scripted or {}, free_bytes or {}
    problems: dict[str, None] = {}
    known = sorted(bookies, key=lambda bookie: bookie.bookie_id)
    located: dict[str, dict[NetworkLocation, list[str]]] = {}
    sources: dict[str, str] = {}
    for bookie in known:
        offers = ((TABLE, table.get(bookie.bookie_id) or table.get(bookie.host)), (SCRIPT, scripted.get(bookie.host)))
        for source, text in (*offers, (REGISTRATION, bookie.location)):
            if text:
                location = _parse(text, f"{source}, bookie {bookie.bookie_id}", problems)
                if location is not None:
                    located.setdefault(bookie.host, {}).setdefault(location, []).append(bookie.bookie_id)
                    sources[bookie.bookie_id] = source
                break
    sites: dict[str, BookieSite] = {}
    for bookie in known:
        offered = located.get(bookie.host, {})
        if len(offered) > 1:
            groups = "; ".join(f"{location}: {', '.join(members)}" for location, members in offered.items())
            problems[f"machine {bookie.host} has several locations ({groups})"] = None
        location = next(iter(offered)) if len(offered) == 1 else DEFAULT_LOCATION
        if len(offered) != 1:
            sources[bookie.bookie_id] = DEFAULT
        elif bookie.bookie_id not in sources:
            sources[bookie.bookie_id] = sources[next(iter(offered.values()))[0]]
        sites[bookie.bookie_id] = BookieSite(bookie.host, location, free_bytes.get(bookie.bookie_id))
    return SiteTable(sites, sources, tuple(problems))


def _parse(text: str, origin: str, problems: dict[str, None]) -> NetworkLocation | None:
    try:
        return parse_location(text)
    except ArgumentError as error:
        problems[f"{origin}: {error}"] = None
        return None
