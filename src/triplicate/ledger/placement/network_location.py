"""Network locations ``/region/rack``, and the sites of bookies: machine, location, free disk.

Source: BookKeeper `NetworkTopology`, `NodeBase`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from triplicate.errors import ArgumentError

DEFAULT_REGION = "default-region"
DEFAULT_RACK = "default-rack"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NetworkLocation:
    """A rack of a region. Racks of one name in two regions are two racks."""

    region: str = DEFAULT_REGION
    rack: str = DEFAULT_RACK

    def __str__(self) -> str:
        return f"/{self.region}/{self.rack}"


DEFAULT_LOCATION = NetworkLocation()
"""The location of bookies without one. They share it, so the policies regard them as one rack."""


def parse_location(text: str) -> NetworkLocation:
    """A location written as ``/region/rack``, or as ``/rack`` in the default region.

    Raises:
        ArgumentError: the text has another form.
    """
    root, *names = text.split("/")
    if root or not 1 <= len(names) <= 2 or not all(_NAME.fullmatch(name) for name in names):
        raise ArgumentError(
            f"{text!r} is no network location; write /region/rack or /rack, with letters, digits, '_', '-' and '.' in each name"
        )
    return NetworkLocation(names[0], names[1]) if len(names) == 2 else NetworkLocation(rack=names[0])


@dataclass(frozen=True, slots=True)
class BookieSite:
    """Where a bookie runs.

    Attributes:
        host: its machine, the lowest failure domain.
        free_bytes: free space of its ledger directories; None where it is not known.
    """

    host: str
    location: NetworkLocation = DEFAULT_LOCATION
    free_bytes: int | None = None
