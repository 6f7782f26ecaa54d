"""Which addresses are public."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.network.addresses import is_public, split_address


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "64:ff9b::808:808"],
)
def test_the_public_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "168.63.129.16",
        "::ffff:168.63.129.16", "64:ff9b::a83f:8110", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8",
        "192.0.2.1", "192.168.1.1", "192.88.99.1", "198.18.0.1", "198.51.100.1",
        "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1",
        "::ffff:8.8.8.8", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:0808:0808::1", "3fff::1", "fc00::1",
        "fd12:3456::1", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "ff02::1", "5f00::1", "4000::1",
        "", "localhost", "1.1.1", "1.1.1.1.1", "0x7f000001", "2130706433", "127.0.0.1:80",
    ],
)  # fmt: skip
def test_everything_else_is_not(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses())
def test_nothing_that_the_standard_library_calls_private_is_public(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(str(address)) and address not in ipaddress.ip_network(
        "64:ff9b::/96" if address.version == 6 else "0.0.0.0/32"
    ):
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_reserved


@pytest.mark.parametrize(("text", "address"), [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:8080", ("::1", 8080))])
def test_a_mapped_address_has_a_port(text: str, address: tuple[str, int]) -> None:
    assert split_address(text) == address


@pytest.mark.parametrize("text", ["", "127.0.0.1", "host:80", "127.0.0.1:x", ":80"])
def test_a_malformed_address_with_a_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        split_address(text)
