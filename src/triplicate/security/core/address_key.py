"""The key of a client's address in tables of limits. Pure."""

from __future__ import annotations

import ipaddress


def address_key(address: str) -> str:
    """The key of an address in tables: the /64 network of an IPv6 address, of which one machine has every address.

    A text that is no address, such as the name of a simulated machine, is its own key.
    """
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return address
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, 64), strict=False))
