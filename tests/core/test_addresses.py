"""Are the addresses known that nobody outside may ask, in each form that they have?"""

from __future__ import annotations

import pytest

from toolbelt.core import addresses


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.170.2",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "168.63.129.16",
        "100.100.100.200",
        "fd00:ec2::254",
        "fd20:ce::254",
    ],
)
def test_a_platforms_own_addresses_are_known(address: str) -> None:
    assert addresses.is_metadata(address)
    assert not addresses.is_public(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "::1", "192.168.1.1", "93.184.215.14"])
def test_other_addresses_are_no_platforms_own(address: str) -> None:
    assert not addresses.is_metadata(address)
