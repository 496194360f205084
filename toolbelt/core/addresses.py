"""Whose is this network address? The public's, or a cloud platform's own, behind which it keeps its secrets."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Public by its number, and still the host's own: the platform's agent on Azure.
_HOSTS_OWN = frozenset({ipaddress.ip_address("168.63.129.16")})
# Where clouds tell a machine its credentials, beyond the link-local ones: Alibaba's, Oracle's; AWS's, Google's by IPv6.
_METADATA = _HOSTS_OWN | {
    ipaddress.ip_address(text) for text in ("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Say whether the address is one of the public network, also by every address that it stands for."""
    return all(
        one.is_global and not one.is_multicast and one not in _HOSTS_OWN for one in _meant(_read(text))
    )


def is_metadata(text: str) -> bool:
    """Say whether the address, or one that it stands for, is where a platform answers its own machines."""
    return any(one.is_link_local or one in _METADATA for one in _meant(_read(text)))


def _read(text: str) -> Address:
    return ipaddress.ip_address(text.partition("%")[0])


def _meant(address: Address) -> Iterator[Address]:
    """Give the address, or those inside it: IPv6 carries IPv4 in several ways. NAT64 and mapped ones are no more."""
    if isinstance(address, ipaddress.IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    else:
        yield address
        if address.sixtofour is not None:
            yield address.sixtofour
        if address.teredo is not None:
            yield from address.teredo
