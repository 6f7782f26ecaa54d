"""A production gateway and an API that stands in a private network: real servers, with TLS of the network's own."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.authority import Authority, Issued
from tests.support.gateway import wait_for
from tests.support.hosts_file import can_change_hosts, with_hosts
from tests.support.manifests import PATIENT, example, write_manifests
from tests.support.production import Production, production
from tests.support.proxied import policy_for
from tests.support.upstream import Upstream, upstream

pytestmark = pytest.mark.skipif(not can_change_hosts(), reason="needs a mount namespace, for a hosts file of its own")

HOST = "billing.corp.gateway.test"
OUTSIDE = "host_io: denied: the domain leads outside the private network billing"


@dataclass
class Site:
    """A gateway, the API that it reaches, and the files that an operator may change."""

    folder: Path
    gate: Production
    up: Upstream
    authority: Authority
    client: Issued

    def leads_to(self, *addresses: str) -> None:
        """The addresses of the API's name from now on."""
        (self.folder / "hosts").write_text("".join(f"{address} {HOST}\n" for address in addresses))

    def reload(self, *tables: str) -> httpx.Response:
        """Put these `[[egress.networks]]` tables in force, in place of those that there are."""
        config = self.folder / "gate" / "gateway.toml"
        rest = config.read_text().partition("# networks\n")[0]
        config.write_text(rest + "# networks\n" + "\n".join(tables))
        return self.gate.operator().post("/v1/admin/reload")

    def table(self, **changes: str) -> str:
        """The API's network."""
        return network(self.up, self.authority, self.client, **changes)

    def call(self) -> tuple[int, str | None]:
        """(status, reason in evidence) of one call."""
        answer = self.gate.agent().execute("billing", {"path": "a"})
        (event,) = self.gate.events(trace_id=answer.headers["x-trace-id"], event_type="ActionCall")
        return answer.status_code, event.get("reason")


def network(up: Upstream, authority: Authority, client: Issued, **changes: str) -> str:
    port = up.address.rpartition(":")[2]
    lines = {
        "name": '"billing"', "domains": f'["{HOST}"]', "ranges": '["127.0.0.0/8"]', "ports": f"[{port}]",
        "ca_file": f'"{authority.file}"',
        "client_certificate": f'{{certificate_file = "{client.certificate}", key_file = "{client.key}"}}',
    } | changes  # fmt: skip
    return "[[egress.networks]]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    authority = Authority(tmp_path)
    client = authority.issue("gateway.client")
    context: ssl.SSLContext = authority.server(HOST, asks_clients=True)
    with upstream(context) as up:
        port = up.address.rpartition(":")[2]
        actions = [
            example(
                "http_fetch", action_id=name, egress={"allowed_domains": [HOST]}, risk_level=risk,
                template={"url_template": f"https://{HOST}:{port}/{{+path}}"}, **PATIENT,
            )
            for name, risk in (("billing", "medium"), ("held", "high"))
        ]  # fmt: skip
        write_manifests(tmp_path / "actions", *actions)
        policy = policy_for(tmp_path / "policy", "run", "billing", "held")
        (tmp_path / "hosts").write_text(f"127.0.0.1 {HOST}\n")
        top = f'manifests_dir = "{tmp_path / "actions"}"\npolicy_dir = "{policy}"\n'
        tables = network(up, authority, client)
        with production(tmp_path / "gate", top, tables, program=with_hosts(tmp_path)) as gate:
            config = tmp_path / "gate" / "gateway.toml"
            config.write_text(config.read_text().replace(tables, "") + "\n# networks\n" + tables)
            yield Site(tmp_path, gate, up, authority, client)


def test_a_production_gateway_reaches_a_private_api_with_its_own_authority_and_a_client_certificate(site: Site) -> None:
    assert site.call() == (200, None)
    assert ([one.path for one in site.up.seen], site.up.handshakes) == (["/a"], 1)


def test_the_networks_name_is_in_event_and_signed_receipt_and_in_the_operators_view(site: Site) -> None:
    agent, operator = site.gate.agent(), site.gate.operator()
    approval = agent.execute("held", {"path": "b"}).json()["approval_id"]
    detail = operator.get(f"/v1/approvals/{approval}").json()
    assert detail["approved_egress"]["private_networks"] == ["billing"]
    executed = operator.post(f"/v1/approvals/{approval}/approve").json()
    receipt = operator.get(f"/v1/receipts/{executed['receipt_id']}").json()
    assert (receipt["egress_networks"], receipt["signature_status"]) == (["billing"], "verified")
    call, pending = site.gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert [call["egress_networks"], pending["egress_networks"]] == [["billing"]] * 2
    assert str(site.client.key) not in site.gate.log.read_text() + str(detail) + str(receipt) + str(call)


def test_each_call_is_judged_by_where_the_name_leads_then(site: Site) -> None:
    for addresses in (["10.9.9.9"], ["127.0.0.1", "10.9.9.9"], ["169.254.169.254"]):
        site.leads_to(*addresses)
        assert site.call() == (502, OUTSIDE)
    site.leads_to("127.0.0.1", "127.0.0.2")
    assert site.call()[0] == 200
    assert len(site.up.seen) == 1


def test_a_reload_takes_a_network_away_though_a_connection_to_it_is_kept(site: Site) -> None:
    assert [site.call()[0] for _ in range(2)] == [200, 200]
    before = {process.pid for process in site.gate.children("worker http")}
    answer = site.reload()
    assert (answer.status_code, answer.json()["changed"]) == (200, ["egress.networks"]), answer.text
    assert site.call() == (502, "host_io: denied: the domain leads to a private or reserved address")
    assert site.reload(site.table(ports="[1]")).status_code == 200
    assert site.call() == (502, "host_io: denied: the port is not one of the private network billing")
    assert site.reload(site.table()).status_code == 200
    assert site.call() == (200, None)
    assert len(site.up.seen) == 3
    # Those lack the new files.
    wait_for(
        lambda: not before & {process.pid for process in site.gate.children("worker http")}, "the end of its workers"
    )


def test_files_of_tls_are_read_again_with_a_reload_and_one_that_will_not_do_refuses_it(site: Site) -> None:
    assert site.call() == (200, None)
    stranger = Authority(site.folder, "stranger").issue("stranger.client")
    site.client.certificate.write_bytes(stranger.certificate.read_bytes())
    site.client.key.write_bytes(stranger.key.read_bytes())
    assert site.reload(site.table()).status_code == 200
    assert site.call()[0] == 502, "the API knows no certificate of that authority"
    fresh = site.authority.issue("gateway.client")
    fresh.key.chmod(0o644)
    refused = site.reload(site.table())
    assert (refused.status_code, refused.json()["error"]) == (500, "reload_failed")
    assert "gateway.client-key.pem: mode 0644 lets others in" in site.gate.log.read_text()
    fresh.key.chmod(0o600)
    assert site.reload(site.table()).status_code == 200
    assert site.call() == (200, None)


def test_a_held_call_is_not_executed_once_its_network_is_another(site: Site) -> None:
    held = [site.gate.agent().execute("held", {"path": "b"}).json()["approval_id"] for _ in range(2)]
    operator = site.gate.operator()
    assert operator.post(f"/v1/approvals/{held[0]}/approve").status_code == 200
    assert site.reload(site.table(ranges='["127.0.0.0/16"]')).status_code == 200
    refused = operator.post(f"/v1/approvals/{held[1]}/approve")
    assert (refused.status_code, refused.json()["error"]) == (409, "plan_integrity")
    assert [one.path for one in site.up.seen] == ["/b"]
