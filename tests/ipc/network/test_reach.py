"""Where a name may lead, by the private networks of a configuration."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.configuration.networks import ClientCertificate, NetworkSettings, PlanNetwork
from ipc.network.addresses import is_public
from ipc.network.reach import (
    NEVER,
    Reach,
    ReachRefused,
    hidden_in,
    may_send_plain,
    networks_for,
    reach_of,
)

NAME = "billing.corp.example"
BILLING = PlanNetwork("billing", (NAME, "*.pay.corp.example"), ("10.20.0.0/16", "fd00:20::/64"), (443, 8443))
SIDE = PlanNetwork("side", (NAME,), ("10.20.0.0/24", "10.30.0.0/16"), (9000,), tls="sha256:1")
HERE = PlanNetwork("here", ("bridge.gateway.test",), ("127.0.0.0/8", "::1/128"), (9000,))
OUTSIDE = "the domain leads outside the private network billing"


def refusal(*addresses: str, host: str = NAME, port: int = 443, networks: tuple[PlanNetwork, ...] = (BILLING,)) -> str:
    with pytest.raises(ReachRefused) as refused:
        reach_of(host, port, addresses, networks)
    return str(refused.value)


def test_a_name_leads_into_the_ranges_of_its_network() -> None:
    assert reach_of(NAME, 443, ["10.20.4.7", "fd00:20::7"], [BILLING]) == Reach(("10.20.4.7", "fd00:20::7"), BILLING)
    assert reach_of("a.pay.corp.example", 8443, ["10.20.255.255"], [SIDE, BILLING]).network == BILLING


@pytest.mark.parametrize("address", ["10.21.0.1", "93.184.216.34", "127.0.0.1", "fd00:20:0:1::7", "x", "10.20.0.1%lo"])
def test_one_address_outside_the_network_refuses_the_name(address: str) -> None:
    assert refusal("10.20.4.7", address) == refusal(address, "10.20.4.7") == refusal(address) == OUTSIDE


def test_a_name_without_addresses_leads_nowhere() -> None:
    assert refusal() == OUTSIDE


def test_a_port_that_the_network_does_not_name_is_refused() -> None:
    assert refusal("10.20.4.7", port=80) == "the port is not one of the private network billing"


def test_a_network_without_ports_takes_those_of_the_url() -> None:
    (any_port,) = networks_for([NetworkSettings("n", (NAME,), ("10.20.0.0/16",))], [NAME])
    assert reach_of(NAME, 9999, ["10.20.4.7"], [any_port]).network == any_port


@pytest.mark.parametrize("host", ["pay.corp.example", "xbilling.corp.example", "other.example"])
def test_names_of_no_network_lead_to_public_addresses_alone(host: str) -> None:
    assert refusal("10.20.4.7", host=host) == "the domain leads to a private or reserved address"
    assert reach_of(host, 443, ["10.20.4.7", "93.184.216.34"], [BILLING]) == Reach(("93.184.216.34",), None)


def test_an_address_that_hides_another_one_counts_as_that_one() -> None:
    forms = ["::ffff:10.20.4.7", "64:ff9b::a14:407", "64:ff9b:1::a14:407", "2002:a14:407::1", "::10.20.4.7"]
    assert reach_of(NAME, 443, forms, [BILLING]).addresses == tuple(forms)
    for form in (
        "::ffff:10.21.4.7",
        "64:ff9b::a15:407",
        "2002:a15:407::1",
        "2001:0:a14:407::1",
        "64:ff9b:1:a14:4:700::",
    ):
        assert refusal(form) == OUTSIDE


@pytest.mark.parametrize("network", ["169.254.0.0/16", "fe80::/32", "fd00:ec2::/64", "100.64.0.0/10", "192.0.0.0/24",
                                     "168.63.129.0/24", "fd00:42::/32", "fd00:c1::/32", "fd20:ce::/32",
                                     "224.0.0.0/8", "ff02::/32", "0.0.0.0/8", "::/32", "2001::/32"])  # fmt: skip
def test_no_network_leads_to_an_address_that_is_never_reached(network: str) -> None:
    named = PlanNetwork("billing", (NAME,), (network,))
    never = [
        "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "fe80::1", "febf::1", "fd00:ec2::254", "192.0.0.192",
        "100.100.100.200", "224.0.0.1", "239.1.1.1", "255.255.255.255", "ff02::1", "::", "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "2001:0:a9fe:a9fe::", "64:ff9b::6464:64c8", "168.63.129.16",
        "2002:a83f:8110::", "fd00:42::42", "fd00:c1::a9fe:a9fe", "fd20:ce::254",
    ]  # fmt: skip
    for address in never:
        assert refusal(address, networks=(named,)) == OUTSIDE


def test_loopback_is_reached_by_a_network_of_it() -> None:
    assert reach_of("bridge.gateway.test", 9000, ["127.0.0.1", "::1"], [HERE]).network == HERE
    assert refusal("127.0.0.1", host="bridge.gateway.test", port=80, networks=(HERE,)).startswith("the port is not one")


@pytest.mark.parametrize("own", ["127.0.0.1:9000", "*:9000"])
@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_no_network_leads_to_a_server_of_the_gateway(own: str, address: str) -> None:
    with pytest.raises(ReachRefused, match="the domain leads to a server that the gateway itself uses"):
        reach_of("bridge.gateway.test", 9000, ["::1", address], [HERE], frozenset({own}))
    assert reach_of("bridge.gateway.test", 9000, [address], [HERE], frozenset({"127.0.0.1:9001", "[::1]:9000"}))


def test_the_first_network_that_has_name_port_and_address_is_the_one_that_is_used() -> None:
    both = (BILLING, SIDE)
    assert reach_of(NAME, 443, ["10.20.0.1"], both).network == BILLING
    assert reach_of(NAME, 9000, ["10.20.0.1"], both).network == SIDE
    assert refusal("10.30.0.1", networks=both) == "the domain leads outside the private network billing and side"


def test_addresses_in_another_network_of_the_name_are_not_tried() -> None:
    both = (PlanNetwork("a", (NAME,), ("10.1.0.0/16",)), PlanNetwork("b", (NAME,), ("10.2.0.0/16",), tls="sha256:2"))
    assert reach_of(NAME, 443, ["10.2.0.1", "10.1.0.1", "10.2.0.2"], both) == Reach(("10.2.0.1", "10.2.0.2"), both[1])


def test_secrets_go_over_http_where_every_network_of_the_name_says_so() -> None:
    plain = PlanNetwork("plain", (NAME,), ("10.0.0.0/8",), unsafe_plain_secrets=True)
    assert may_send_plain(NAME, [plain])
    assert not may_send_plain(NAME, [plain, BILLING])
    assert not may_send_plain("other.example", [plain])
    assert not may_send_plain(NAME, [])


def test_a_plan_has_the_networks_of_its_names_and_no_path_of_a_file() -> None:
    files = ClientCertificate("/etc/cert.pem", "/etc/key.pem")
    billing = NetworkSettings("billing", ("*.corp.example",), ("10.0.0.0/8",), (443,), "/etc/ca.pem", files, True)
    other = NetworkSettings("other", ("a.other.example",), ("10.0.0.0/8",))
    (planned,) = networks_for([other, billing], [NAME, "api.example"])
    assert planned == PlanNetwork("billing", ("*.corp.example",), ("10.0.0.0/8",), (443,), True, billing.planned.tls)
    assert planned.tls is not None
    assert planned.tls.startswith("sha256:")
    assert networks_for([other, billing], ["*.example"]) == (other.planned, billing.planned)
    assert other.planned.tls is None


@given(st.ip_addresses(), st.ip_addresses(v=4), st.integers(8, 32))
def test_what_is_reached_lies_in_a_range_and_is_never_one_of_those_that_are_refused(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, base: ipaddress.IPv4Address, prefix: int
) -> None:
    block = ipaddress.ip_network((int(base), prefix), strict=False)
    wide = PlanNetwork("wide", (NAME,), (str(block), "2000::/3", "fc00::/7"))
    try:
        reach_of(NAME, 443, [str(address)], [wide])
    except ReachRefused:
        return
    counted = hidden_in(str(address))
    assert counted is not None
    assert any(counted in ipaddress.ip_network(one) for one in wide.ranges)
    assert not any(counted in never for never in NEVER)


@given(st.ip_addresses())
def test_without_a_network_exactly_public_addresses_are_reached(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    try:
        reach_of("other.example", 443, [str(address)], [BILLING])
    except ReachRefused:
        assert not is_public(str(address))
    else:
        assert is_public(str(address))
