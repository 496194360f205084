"""Classification of IP addresses: public, or a cloud platform's metadata service.

The tables follow IANA's registries of special-purpose addresses (IPv4 and IPv6). Python's own tables differ between
versions. An IPv6 address that embeds an IPv4 address is classified by the IPv4 address.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_PUBLIC_V4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared, behind a provider's NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's host agent: in a public range, but it belongs to the platform
        "169.254.0.0/16",  # link-local
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays (deprecated)
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# All public addresses are in the first network; the second table lists the special ranges within it. A 6to4 address is
# classified by the IPv4 address that it embeds.
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)

_LINK_LOCAL = (ipaddress.IPv4Network("169.254.0.0/16"), ipaddress.IPv6Network("fe80::/10"))
# Where clouds serve a machine's credentials, apart from link-local addresses: Azure, Alibaba, Oracle, and over IPv6 AWS
# and Google.
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)

# A name, one with its subdomains (.example.com), or an address.
_HOST = re.compile(r"\.?[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]")
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
_TEREDO = ipaddress.IPv6Network("2001::/32")
# A network's own NAT64 prefix: the network chooses how many bits precede the IPv4 address (RFC 6052).
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
# IPv4-compatible (deprecated) and IPv4-translated: no public address has one of these forms.
_OTHER_FORMS = (ipaddress.IPv6Network("::/96"), ipaddress.IPv6Network("::ffff:0:0:0/96"))
_ISATAP = 0x5EFE


def is_host_name(text: str) -> bool:
    """Return whether the text is a host as in Django's ``ALLOWED_HOSTS``: without a scheme, port and path."""
    return _HOST.fullmatch(text) is not None


def is_this_machine(host: str) -> bool:
    """Return whether a host's name or address is the machine's own: ``localhost``, or a loopback address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_public(text: str) -> bool:
    """Return whether the address, and each IPv4 address that it embeds, is on the public internet."""
    address = _read(text)
    if isinstance(address, ipaddress.IPv4Address):
        return _is_public_v4(address)
    if address in _MAPPED or address in _NAT64:
        is_unicast = True
    else:
        is_unicast = address in _UNICAST_V6 and not any(address in network for network in _NOT_PUBLIC_V6)
    return is_unicast and all(map(_is_public_v4, _embedded(address)))


def is_metadata(text: str) -> bool:
    """Return whether the address, or one that it embeds, may be a cloud platform's metadata service."""
    address = _read(text)
    candidates: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        candidates.extend(_embedded(address))
    return any(
        candidate in _METADATA or any(candidate in network for network in _LINK_LOCAL)
        for candidate in candidates
    )


def _read(text: str) -> Address:
    return ipaddress.ip_address(text.partition("%")[0])


def _is_public_v4(address: ipaddress.IPv4Address) -> bool:
    return not any(address in network for network in _NOT_PUBLIC_V4)


def _embedded(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    """Yield each IPv4 address that the address may embed."""
    number = int(address)
    last = number & 0xFFFFFFFF
    if any(address in network for network in (_MAPPED, _NAT64, _LOCAL_NAT64, *_OTHER_FORMS)):
        yield ipaddress.IPv4Address(last)
    if address in _SIX_TO_FOUR:
        yield ipaddress.IPv4Address(number >> 80 & 0xFFFFFFFF)
    if address in _TEREDO:
        yield ipaddress.IPv4Address(number >> 64 & 0xFFFFFFFF)  # its server
        yield ipaddress.IPv4Address(last ^ 0xFFFFFFFF)
    if address in _LOCAL_NAT64:
        # Bits 64 to 71 are always zero: the IPv4 address is split around them.
        joined = (number >> 64 & 0xFFFFFFFFFFFFFFFF) << 56 | number & 0xFFFFFFFFFFFFFF
        for prefix in (48, 56, 64):
            yield ipaddress.IPv4Address(joined >> 120 - prefix - 32 & 0xFFFFFFFF)
    if number >> 32 & 0xFDFFFFFF == _ISATAP:
        yield ipaddress.IPv4Address(last)
