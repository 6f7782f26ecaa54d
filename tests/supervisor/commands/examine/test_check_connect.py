"""`gateway check` of a configuration whose policy engine is an OPA; `--connect` reports the dependencies that do not
answer."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipc.process.exits import Exit
from tests.supervisor.test_cli import here
from tests.support.authority import Authority
from tests.support.checked import whole_configuration
from tests.support.hosts_file import can_change_hosts
from tests.support.manifests import example, write_manifests
from tests.support.opa import opa
from tests.support.ports import closed_port
from tests.support.processes import GATEWAY
from tests.support.upstream import upstream

needs_hosts = pytest.mark.skipif(not can_change_hosts(), reason="needs a mount namespace, for a hosts file of its own")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made")
    whole_configuration(made)
    return made


@pytest.fixture(scope="module")
def check(folder: Path) -> Callable[..., tuple[int, str]]:
    """Check the configuration with these lines at its top."""
    file = folder / "gateway.toml"
    text = file.read_text()

    def checked(lines: str, *arguments: str) -> tuple[int, str]:
        file.write_text(f"{lines}\n{text}")
        done = here(folder, "check", "--config", "gateway.toml", *arguments)
        assert done.stderr == ""
        return done.returncode, done.stdout

    return checked


AUTHZ = """package system.authz

import rego.v1

default allow := false

allow if input.identity == "letmein"

allow if input.path == ["health"]
"""


def test_an_opa_is_asked_with_the_token_and_a_missing_token_is_reported(
    check: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("letmein\n")
    token.chmod(0o600)
    (tmp_path / "authz.rego").write_text(AUTHZ)
    options = ("--authentication=token", "--authorization=basic")
    with opa(tmp_path, (str(tmp_path / "authz.rego"),), options, is_tcp=True) as running:
        code, said = check(f'opa_url = "{running.url}"\nopa_token_file = "{token}"', "--connect")
        assert (code, said.count("no problems")) == (0, 1), said
        code, said = check(f'opa_url = "{running.url}"', "--connect")
        assert code == Exit.UNAVAILABLE
        assert "gateway.toml:1  opa_url: OPA answered 401" in said
        token.chmod(0o644)
        code, said = check(f'opa_url = "{running.url}"\nopa_token_file = "{token}"', "--connect")
        assert "mode 0644 lets others in" in said


def test_a_silent_dependency_is_a_problem_at_its_setting(check: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    with closed_port() as port:
        lines = f'opa_url = "unix://{tmp_path}/nobody.sock"\negress_proxy_url = "http://127.0.0.1:{port}"'
        code, said = check(lines)
        assert (code, said.count("is not used: the OPA of opa_url has the rules")) == (0, 1)
        code, said = check(lines, "--connect")
    assert code == Exit.UNAVAILABLE
    assert "gateway.toml:1  opa_url: no connection to OPA" in said
    assert "gateway.toml:2  egress_proxy_url: the proxy does not answer" in said
    assert "2 problems, nothing started." in said


# ------------------------------------------------------------------------------------------------ private networks

HOST = "api.corp.gateway.test"


def told(folder: Path, hosts: str, networks: str, url: str, *more_domains: str) -> tuple[int, str]:
    """(exit code, output) of `gateway check --connect` of one action that goes to `url`, with this hosts file."""
    manifest = example(
        "http_fetch", action_id="inward", egress={"allowed_domains": [HOST, *more_domains]},
        template={"url_template": f"{url}/{{+path}}"},
    )  # fmt: skip
    return told_of(folder, hosts, networks, manifest)


def told_of(folder: Path, hosts: str, networks: str, manifest: dict[str, Any]) -> tuple[int, str]:
    """(exit code, output) of `gateway check --connect` of this action, with this hosts file."""
    whole_configuration(folder)
    for file in (folder / "actions").glob("*.yaml"):
        file.unlink()
    write_manifests(folder / "actions", manifest)
    (folder / "hosts").write_text(hosts)
    config = folder / "gateway.toml"
    config.write_text(f"{config.read_text()}\n{networks}")
    script = f"mount --bind hosts /etc/hosts && exec {GATEWAY} check --config gateway.toml --connect"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout


def network(ranges: str = '["127.0.0.0/8"]', **more: str) -> str:
    lines = {"name": '"corp"', "domains": f'["{HOST}"]', "ranges": ranges, "ports": "[1]"} | more
    return "[[egress.networks]]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())


@needs_hosts
def test_a_host_that_leads_where_no_call_may_is_a_problem_with_the_table_that_lets_it(tmp_path: Path) -> None:
    leads = {
        HOST: ["10.1.2.3"], "inside.gateway.test": ["10.1.2.4"], "outside.gateway.test": ["8.8.8.8"],
        "both.gateway.test": ["10.1.2.3", "8.8.8.8"], "metadata.gateway.test": ["169.254.169.254"],
    }  # fmt: skip
    hosts = "".join(f"{address} {name}\n" for name, addresses in leads.items() for address in addresses)
    code, said = told(tmp_path, hosts, "", f"https://{HOST}", *list(leads)[1:], "nowhere.gateway.invalid")
    assert code == Exit.CONFIG
    assert f"egress.allowed_domains: {HOST} leads to 10.1.2.3: add it to [[egress.networks]]." in said
    line = (tmp_path / "actions" / "inward.yaml").read_text().splitlines().index("  - inside.gateway.test") + 1
    assert f"inward.yaml:{line}  egress.allowed_domains: inside.gateway.test leads to 10.1.2.4: add it to" in said
    assert "metadata.gateway.test leads to 169.254.169.254, which no network may hold." in said
    assert "3 problems, nothing started." in said


@needs_hosts
def test_a_host_that_leads_outside_its_network_is_a_problem(tmp_path: Path) -> None:
    hosts = f"127.0.0.1 {HOST}\n10.9.9.9 {HOST}\n"
    code, said = told(tmp_path, hosts, network(), f"http://{HOST}:1")
    assert code == Exit.CONFIG
    assert f"{HOST} leads to 127.0.0.1, 10.9.9.9: the domain leads outside the private network corp." in said


@needs_hosts
def test_a_host_of_a_template_that_can_not_be_resolved_is_warned_of(tmp_path: Path) -> None:
    code, said = told(tmp_path, "", "", f"https://{HOST}")
    assert code == 0
    assert f"warning: egress.allowed_domains: {HOST} can't be resolved." in said


@needs_hosts
def test_the_server_that_gives_tokens_is_looked_at_like_the_hosts_of_calls(tmp_path: Path) -> None:
    token = {"token_url": "https://login.gateway.test/token", "client_id": "gateway"}
    manifest = example(
        "http_fetch", action_id="inward", egress={"allowed_domains": ["api.gateway.test"]},
        template={"url_template": "https://api.gateway.test/{+path}"},
        secrets=[{"name": "token", "required": True, "inject": {"oauth2_client_credentials": token}}],
    )  # fmt: skip
    code, said = told_of(tmp_path, "8.8.8.8 api.gateway.test\n10.1.2.3 login.gateway.test\n", "", manifest)
    assert code == Exit.CONFIG
    place = "secrets[0].inject.oauth2_client_credentials.token_url"
    assert f"{place}: login.gateway.test leads to 10.1.2.3: add it to [[egress.networks]]." in said


@needs_hosts
def test_the_address_of_an_mcp_server_is_connected_to(tmp_path: Path) -> None:
    with closed_port() as port:
        manifest = {
            "action_id": "clock_now", "version": "1.0.0", "provider_module_digest": "builtin:mcp",
            "required_imports": ["http"], "verifier_kind": "unverifiable", "io": {"request_schema": {"type": "object"}},
            "egress": {"profile": "direct_allowlist", "allowed_domains": [HOST], "allowed_methods": ["POST"]},
            "mcp": {"url": f"http://{HOST}:{port}/mcp", "tool": "now", "tool_digest": f"sha256:{64 * '0'}"},
        }  # fmt: skip
        code, said = told_of(tmp_path, f"127.0.0.1 {HOST}\n", network(ports=f"[{port}]"), manifest)
    assert code == Exit.UNAVAILABLE, said
    assert f"{HOST} at port {port} can't be connected to. Start it, or correct the manifest." in said


@needs_hosts
@pytest.mark.parametrize("answers", ["as the network says", "with another certificate", "not"])
def test_a_host_of_a_network_is_connected_to_and_agrees_on_tls(answers: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    client = authority.issue("gateway.client")
    known = authority if answers != "with another certificate" else Authority(tmp_path, "stranger")
    with upstream(known.server(HOST, asks_clients=True)) as up, closed_port() as closed:
        port = closed if answers == "not" else int(up.address.rpartition(":")[2])
        pair = f'{{certificate_file = "{client.certificate}", key_file = "{client.key}"}}'
        table = network(ports=f"[{port}]", ca_file=f'"{authority.file}"', client_certificate=pair)
        code, said = told(tmp_path, f"127.0.0.1 {HOST}\n", table, f"https://{HOST}:{port}")
        assert not up.seen
    if answers == "as the network says":
        assert (code, said.count("no problems"), up.handshakes) == (0, 1, 1), said
        return
    assert code == Exit.UNAVAILABLE
    why = "can't be connected to" if answers == "not" else "has a certificate that is signed by an unknown authority"
    assert f"egress.allowed_domains: {HOST} at port {port} {why}. Start it, or correct the manifest." in said


@needs_hosts
def test_a_client_certificate_that_does_not_fit_its_key_is_a_problem(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.issue("one.client"), authority.issue("other.client")
    pair = f'{{certificate_file = "{one.certificate}", key_file = "{other.key}"}}'
    code, said = told(tmp_path, f"127.0.0.1 {HOST}\n", network(client_certificate=pair), f"https://{HOST}:1")
    assert code == Exit.CONFIG
    assert "the certificate files of the private network corp can't be used. Correct ca_file" in said


@needs_hosts
def test_an_issuer_whose_keys_can_t_be_fetched_is_a_problem_at_its_address(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with upstream(authority.server("login.gateway.test")) as up, closed_port() as closed:
        port = int(up.address.rpartition(":")[2])
        names = {"fine": f"login.gateway.test:{port}", "wrong": f"wrong.gateway.test:{port}",
                 "closed": f"login.gateway.test:{closed}", "inside": "inside.gateway.test"}  # fmt: skip
        rows = "".join(
            f'[[identity.issuers]]\nname = "{name}"\nissuer = "https://{name}"\naudience = "a"\n'
            f'jwks_url = "https://{at}/keys"\nalgorithms = ["RS256"]\nprincipal = "{name}:{{sub}}"\n'
            for name, at in names.items()
        )
        table = network(
            name='"login"', domains='["login.gateway.test", "wrong.gateway.test"]', ports=f"[{port}, {closed}]",
            ca_file=f'"{authority.file}"',
        )  # fmt: skip
        hosts = "127.0.0.1 login.gateway.test wrong.gateway.test\n10.1.2.3 inside.gateway.test\n"
        manifest = example("text_digest", action_id="still")
        code, said = told_of(tmp_path, hosts, f"{table}{rows}[identity]\nedge_uids = [991]\n", manifest)
    assert code == Exit.CONFIG
    assert "issuers[0]" not in said, said
    assert "identity.issuers[1].jwks_url: wrong.gateway.test at port" in said
    assert "has a certificate that" in said
    assert f"identity.issuers[2].jwks_url: login.gateway.test at port {closed} can't be connected to." in said
    assert "identity.issuers[3].jwks_url: inside.gateway.test leads to 10.1.2.3: add it to [[egress.networks]]." in said
    assert "3 problems, nothing started." in said
