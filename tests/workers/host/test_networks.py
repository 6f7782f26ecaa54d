"""The http host call into private networks: which addresses of a name are connected to, and by which certificates."""

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from msgspec.structs import replace

from ipc.configuration.networks import ClientCertificate, NetworkTls, PlanNetwork
from ipc.configuration.secret_ways import AsHeader
from ipc.plan import Plan, PlannedRequest, SecretUse
from tests.support.authority import Authority
from tests.support.http_host import Client, Names, request
from tests.support.worker_plans import http_plan
from tests.support.worker_upstream import Upstream, lasting, ok, upstream
from workers.host.kept import KeptConnections
from workers.host.network_tls import read_authorities, with_certificates

HOST = "billing.gateway.test"
SECRET = "a-secret-of-the-test"
OUTSIDE = ("denied", "the domain leads outside the private network billing")


def url_of(up: Upstream, scheme: str = "http", host: str = HOST) -> str:
    return f"{scheme}://{host}:{up.address.rpartition(':')[2]}/"


def plan_to(url: str, *networks: PlanNetwork, **changes: Any) -> Plan:
    plan = http_plan(HOST, http_request=PlannedRequest("GET", url), **changes)
    return replace(plan, egress=replace(plan.egress, networks=networks))


def here(up: Upstream, **changes: Any) -> PlanNetwork:
    values = {"ports": (int(up.address.rpartition(":")[2]),)} | changes
    return PlanNetwork("billing", (HOST,), ("127.0.0.0/8", "10.20.0.0/16"), **values)


def test_a_name_of_a_network_is_resolved_once_and_reached() -> None:
    with upstream(ok(b'"in"')) as up:
        names = Names(["127.0.0.1", "10.20.4.7"])
        client = Client(plan_to(url_of(up), here(up)), names=names)
        assert client.send(request(url_of(up))).body == b'"in"'
        assert names.questions == [HOST]


@pytest.mark.parametrize("addresses", [["127.0.0.1", "10.21.0.1"], ["8.8.8.8", "127.0.0.1"], ["8.8.8.8"]])
def test_a_name_with_one_address_outside_its_network_is_connected_to_nowhere(addresses: list[str]) -> None:
    with upstream(ok()) as up:
        assert Client(plan_to(url_of(up), here(up)), names=Names(addresses)).refused(request(url_of(up))) == OUTSIDE
        assert up.connections == 0


def test_a_name_that_answers_otherwise_the_next_time_is_refused_then() -> None:
    with upstream(ok()) as up:
        client = Client(plan_to(url_of(up), here(up)), names=Names(["127.0.0.1"], ["169.254.169.254"]))
        assert client.send(request(url_of(up))).status == 200
        assert client.refused(request(url_of(up))) == OUTSIDE


def test_without_its_network_a_private_name_is_refused_though_a_connection_is_kept() -> None:
    kept = KeptConnections()
    with upstream(lasting(), then=[lasting()] * 3) as up:
        url, inside = url_of(up), here(up)
        for _ in range(2):
            client = Client(plan_to(url, inside), names=Names(["127.0.0.1"]), kept=kept)
            assert client.send(request(url)).status == 200
        assert up.connections == 1, "the second call uses the connection of the first"
        for networks in ((), (replace(inside, ranges=("10.20.0.0/16",)),)):
            client = Client(plan_to(url, *networks), names=Names(["127.0.0.1"]), kept=kept)
            assert client.refused(request(url))[0] == "denied"
        assert len(up.requests) == 2
        kept.close()


def test_a_server_that_the_gateway_uses_is_reached_by_no_network() -> None:
    with upstream(ok()) as up:
        own = frozenset({up.address})
        client = Client(plan_to(url_of(up), here(up)), names=Names(["127.0.0.1"]), own_servers=own)
        assert client.refused(request(url_of(up))) == (
            "denied", "the domain leads to a server that the gateway itself uses"
        )  # fmt: skip
        assert up.connections == 0


@pytest.mark.parametrize("may_be_plain", [True, False])
def test_a_secret_goes_over_http_only_where_the_network_says_so(may_be_plain: bool) -> None:
    with upstream(ok()) as up:
        use = SecretUse("token", way=AsHeader("X-Token"), domains=(HOST,))
        plan = plan_to(url_of(up), here(up, unsafe_plain_secrets=may_be_plain), secrets=(use,))
        client = Client(plan, secrets={"token": SECRET}, names=Names(["127.0.0.1"]))
        if may_be_plain:
            client.send(request(url_of(up)))
            assert f"x-token: {SECRET}\r\n".encode() in up.requests[0]
        else:
            assert client.refused(request(url_of(up))) == ("denied", "a secret is never sent without TLS")


# ----------------------------------------------------------------------------------------------------------- TLS


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def reached(
    up: Upstream, files: NetworkTls, contexts: dict[str, ssl.SSLContext | None] | None = None
) -> Client:  # fmt: skip
    made = with_certificates(read_authorities([files])) if contexts is None else contexts
    plan = plan_to(url_of(up, "https"), here(up, tls=files.digest))
    return Client(plan, names=Names(["127.0.0.1"]), network_tls=made)


def test_a_network_is_known_by_its_own_authorities_and_the_client_by_its_certificate(authority: Authority) -> None:
    issued = authority.issue("gateway.client")
    files = NetworkTls(str(authority.file), ClientCertificate(str(issued.certificate), str(issued.key)))
    with upstream(ok(b'"mtls"'), authority.server(HOST, asks_clients=True)) as up:
        assert reached(up, files).send(request(url_of(up, "https"))).body == b'"mtls"'
        without = reached(up, NetworkTls(str(authority.file)))
        assert without.refused(request(url_of(up, "https")))[0] == "unavailable"
        assert len(up.requests) == 1


def test_the_systems_authorities_do_not_vouch_for_a_network_and_its_own_for_no_other(authority: Authority) -> None:
    with upstream(ok(), authority.server(HOST)) as up:
        client = Client(plan_to(url_of(up, "https"), here(up)), names=Names(["127.0.0.1"]))
        said = client.refused(request(url_of(up, "https")))
        assert said[1].startswith("the upstream's certificate is signed by an unknown authority")
        elsewhere = replace(here(up, tls=NetworkTls(str(authority.file)).digest), domains=("other.gateway.test",))
        client = Client(plan_to(url_of(up, "https"), here(up), elsewhere), names=Names(["127.0.0.1"]))
        assert client.refused(request(url_of(up, "https"))) == said


@pytest.mark.parametrize("broken", ["ca_file", "key_file", "certificate_file"])
def test_files_that_can_not_be_used_let_nothing_out_and_are_named_in_the_log(
    broken: str, authority: Authority, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    issued = authority.issue("gateway.client")
    paths = {"ca_file": str(authority.file), "key_file": str(issued.key), "certificate_file": str(issued.certificate)}
    paths[broken] = str(tmp_path / "none.pem")
    ca_file = paths.pop("ca_file")
    files = NetworkTls(ca_file, ClientCertificate(**paths))
    with upstream(ok(), authority.server(HOST)) as up:
        kind, message = reached(up, files).refused(request(url_of(up, "https")))
        assert (kind, message) == (
            "unavailable", "the certificate files of the private network billing can't be used"
        )  # fmt: skip
        assert up.connections == 0
    assert "of a private network can't be used" in capfd.readouterr().err


def test_a_worker_that_lacks_the_files_of_a_plan_takes_no_others_for_them(authority: Authority) -> None:
    with upstream(ok(), authority.server(HOST)) as up:
        client = reached(up, NetworkTls(str(authority.file)), contexts={})
        assert client.refused(request(url_of(up, "https")))[0] == "unavailable"


def test_a_key_with_a_password_is_refused_and_not_asked_for(authority: Authority, tmp_path: Path) -> None:
    issued = authority.issue("gateway.client")
    key = serialization.load_pem_private_key(issued.key.read_bytes(), None)
    issued.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
    )  # fmt: skip
    files = NetworkTls(str(authority.file), ClientCertificate(str(issued.certificate), str(issued.key)))
    assert with_certificates(read_authorities([files])) == {files.digest: None}
