"""`gateway check --connect` reports the dependencies and hosts that do not answer, or that no call may reach."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ipc.process.exits import Exit
from tests.supervisor.test_cli import here
from tests.support.authority import Authority
from tests.support.checked import whole_configuration
from tests.support.gateway import wait_for
from tests.support.hosts_file import can_change_hosts
from tests.support.manifests import example, write_manifests
from tests.support.ports import closed_port
from tests.support.processes import GATEWAY
from tests.support.upstream import Upstream, upstream

needs_hosts = pytest.mark.skipif(not can_change_hosts(), reason="needs a mount namespace, for a hosts file of its own")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made")
    whole_configuration(made)
    data = made / "policy" / "data.json"
    data.write_text(json.dumps(json.loads(data.read_text()) | {"denied_actions": {}}))  # of no other action's manifests
    return made


def test_a_silent_dependency_is_a_problem_at_its_setting_and_unless_it_is_asked_for_none_is_looked_at(
    folder: Path,
) -> None:
    text = (folder / "gateway.toml").read_text()
    with closed_port() as port:
        lines = f'opa_url = "unix://{folder}/nobody.sock"\negress_proxy_url = "http://127.0.0.1:{port}"'
        (folder / "silent.toml").write_text(f"{lines}\n{text}")
        done = here(folder, "check", "--config", "silent.toml")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("is not used: the OPA of opa_url has the rules") == 1
        done = here(folder, "check", "--config", "silent.toml", "--connect")
    assert (done.returncode, done.stderr) == (Exit.UNAVAILABLE, "")
    assert "silent.toml:1  opa_url: no connection to OPA" in done.stdout
    assert "silent.toml:2  egress_proxy_url: the proxy does not answer" in done.stdout
    assert "2 problems, nothing started." in done.stdout


# ------------------------------------------------------------------------------------------------ private networks

CORP, TOKENS = "api.corp.gateway.test", "login.gateway.test"


def connected(
    folder: Path, name: str, leads: dict[str, list[str]], tables: str, *manifests: dict[str, Any]
) -> tuple[int, list[str]]:
    """(exit code, lines) of `gateway check --connect` of these actions, with a hosts file in which names lead to these
    addresses."""
    write_manifests(folder / name, *manifests)
    (folder / f"{name}.hosts").write_text("".join(f"{to} {host}\n" for host, tos in leads.items() for to in tos))
    text = (folder / "gateway.toml").read_text().replace('manifests_dir = "actions"', f'manifests_dir = "{name}"')
    (folder / f"{name}.toml").write_text(f"{text}\n{tables}")
    script = f"mount --bind {name}.hosts /etc/hosts && exec {GATEWAY} check --config {name}.toml --connect"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout.splitlines()


def to(url: str, *more_domains: str, **changes: Any) -> dict[str, Any]:
    """An action that goes to this address; its id is the first label of the host."""
    host = url.partition("://")[2].partition(":")[0]
    return example(
        "http_fetch", action_id=host.partition(".")[0], egress={"allowed_domains": [host, *more_domains]},
        template={"url_template": f"{url}/{{+path}}"}, **changes,
    )  # fmt: skip


def network(name: str, *domains: str, port: int = 1, **more: str) -> str:
    """A private network on this machine."""
    of_domains = ", ".join(f'"{one}"' for one in domains)
    lines = {"name": f'"{name}"', "domains": f"[{of_domains}]", "ranges": '["127.0.0.0/8"]', "ports": f"[{port}]"}
    return "[[egress.networks]]\n" + "".join(f"{name} = {value}\n" for name, value in (lines | more).items())


def issuer(name: str, at: str) -> str:
    return (
        f'[[identity.issuers]]\nname = "{name}"\nissuer = "https://{name}"\naudience = "a"\n'
        f'jwks_url = "https://{at}/keys"\nalgorithms = ["RS256"]\nprincipal = "{name}:{{sub}}"\n'
    )


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def up(authority: Authority) -> Iterator[Upstream]:
    """A server of one name that asks its clients for certificates."""
    with upstream(authority.server(CORP, asks_clients=True)) as server:
        yield server


def port_of(server: Upstream) -> int:
    return int(server.address.rpartition(":")[2])


def pair(folder: Path, certificate: str, key: str) -> str:
    return f'{{certificate_file = "{folder / certificate}.pem", key_file = "{folder / key}-key.pem"}}'


@needs_hosts
def test_a_host_of_a_network_is_connected_to_and_one_that_can_not_be_resolved_is_warned_of(
    folder: Path, authority: Authority, up: Upstream
) -> None:
    authority.issue("gateway.client")
    port, before = port_of(up), up.handshakes
    table = network(
        "corp", CORP, port=port, ca_file=f'"{authority.file}"',
        client_certificate=pair(folder, "gateway.client", "gateway.client"),
    )  # fmt: skip
    actions = to(f"https://{CORP}:{port}"), to("https://lost.gateway.invalid")
    code, lines = connected(folder, "fine", {CORP: ["127.0.0.1"]}, table, *actions)
    wait_for(lambda: up.handshakes > before, "a server that has counted the handshake")  # a client is done before it
    warning, good = lines
    assert "warning: egress.allowed_domains: lost.gateway.invalid can't be resolved." in warning
    assert (code, good.count("no problems"), up.handshakes - before) == (0, 1, 1)
    assert not up.seen


class Told(NamedTuple):
    """The outcome of one check of many hosts."""

    code: int
    lines: list[str]
    port: int
    """Where a server answers."""
    closed: int
    """Where none does."""

    def of(self, host: str) -> str:
        """The one line about this host."""
        (line,) = [line for line in self.lines if f": {host} " in line]
        return line


LEADS = {
    "inside.gateway.test": ["10.1.2.4"], "outside.gateway.test": ["8.8.8.8"],
    "both.gateway.test": ["10.1.2.3", "8.8.8.8"], "metadata.gateway.test": ["169.254.169.254"],
}  # fmt: skip


@pytest.fixture(scope="module")
def told(folder: Path, authority: Authority, up: Upstream) -> Iterator[Told]:
    authority.issue("one.client")
    authority.issue("other.client")
    stranger = Authority(folder, "stranger")
    ours = f'"{authority.file}"'
    mcp = {
        "action_id": "clock_now", "version": "1.0.0", "provider_module_digest": "builtin:mcp",
        "required_imports": ["http"], "verifier_kind": "unverifiable", "io": {"request_schema": {"type": "object"}},
        "egress": {"profile": "direct_allowlist", "allowed_domains": ["clock.gateway.test"],
                   "allowed_methods": ["POST"]},
    }  # fmt: skip
    token = {"token_url": "https://tokens.gateway.test/token", "client_id": "gateway"}
    secret = {"name": "upstream_token", "required": True, "inject": {"oauth2_client_credentials": token}}
    with upstream(authority.server(TOKENS)) as tokens, closed_port() as closed:
        port = port_of(tokens)
        mcp["mcp"] = {"url": f"http://clock.gateway.test:{closed}/mcp", "tool": "now",
                      "tool_digest": f"sha256:{64 * '0'}"}  # fmt: skip
        here_too = "split", "strange", "silent", "unfit", "clock"
        local = {f"{name}.gateway.test": ["127.0.0.1"] for name in (*here_too, "login", "wrong")}
        tables = [
            network("split", "split.gateway.test"),
            network("strange", "strange.gateway.test", port=port_of(up), ca_file=f'"{stranger.file}"'),
            network("silent", "silent.gateway.test", "clock.gateway.test", port=closed, ca_file=ours),
            network("unfit", "unfit.gateway.test", client_certificate=pair(folder, "one.client", "other.client")),
            network("login", TOKENS, "wrong.gateway.test", ports=f"[{port}, {closed}]", ca_file=ours),
            issuer("fine", f"{TOKENS}:{port}"), issuer("wrong", f"wrong.gateway.test:{port}"),
            issuer("closed", f"{TOKENS}:{closed}"), issuer("inside", "inside.gateway.test"),
            "[identity]\nedge_uids = [991]\n",
        ]  # fmt: skip
        actions = (
            to("https://inward.gateway.test", *LEADS, "nowhere.gateway.invalid"), to("http://split.gateway.test:1"),
            to(f"https://strange.gateway.test:{port_of(up)}"), to(f"https://silent.gateway.test:{closed}"),
            to("https://unfit.gateway.test:1"), to("https://paying.gateway.test", secrets=[secret]), mcp,
        )  # fmt: skip
        outside = {"inward.gateway.test": ["10.1.2.3"], "paying.gateway.test": ["8.8.8.8"],
                   "tokens.gateway.test": ["10.1.2.5"], "split.gateway.test": ["127.0.0.1", "10.9.9.9"]}  # fmt: skip
        code, lines = connected(folder, "mixed", local | LEADS | outside, "".join(tables), *actions)
        yield Told(code, lines, port, closed)


@needs_hosts
def test_a_host_that_leads_where_no_call_may_is_a_problem_with_the_table_that_lets_it(told: Told, folder: Path) -> None:
    assert told.code == Exit.CONFIG
    file = folder / "mixed" / "inward.yaml"
    line = file.read_text().splitlines().index("  - inside.gateway.test") + 1
    said = [one for one in told.lines if "inward.yaml" in one]
    assert [one.partition(": ")[2].partition(". ")[0] for one in said] == [
        "inward.gateway.test leads to 10.1.2.3: add it to [[egress.networks]]",
        "inside.gateway.test leads to 10.1.2.4: add it to [[egress.networks]]",
        "metadata.gateway.test leads to 169.254.169.254, which no network may hold",
    ]
    assert f"inward.yaml:{line}  egress.allowed_domains: inside.gateway.test" in said[1]


@needs_hosts
def test_a_host_that_leads_outside_its_network_is_a_problem(told: Told) -> None:
    said = told.of("split.gateway.test")
    assert "leads to 127.0.0.1, 10.9.9.9: the domain leads outside the private network split." in said


@needs_hosts
def test_the_server_that_gives_tokens_is_looked_at_like_the_hosts_of_calls(told: Told) -> None:
    place = "secrets[0].inject.oauth2_client_credentials.token_url"
    said = told.of("tokens.gateway.test")
    assert f"{place}: tokens.gateway.test leads to 10.1.2.5: add it to [[egress.networks]]." in said


@needs_hosts
def test_hosts_and_mcp_servers_that_do_not_answer_or_have_another_certificate_are_said(
    told: Told, up: Upstream
) -> None:
    mend = "Start it, or correct the manifest."
    for name in ("silent", "clock"):
        said = told.of(f"{name}.gateway.test")
        assert (
            f"egress.allowed_domains: {name}.gateway.test at port {told.closed} can't be connected to. {mend}" in said
        )
    why = f"at port {port_of(up)} has a certificate that is signed by an unknown authority. {mend}"
    assert f"egress.allowed_domains: strange.gateway.test {why}" in told.of("strange.gateway.test")


@needs_hosts
def test_a_client_certificate_that_does_not_fit_its_key_is_a_problem(told: Told) -> None:
    (said,) = [line for line in told.lines if "unfit.yaml" in line]
    assert "the certificate files of the private network unfit can't be used. Correct ca_file" in said


@needs_hosts
def test_an_issuer_whose_keys_can_t_be_fetched_is_a_problem_at_its_address(told: Told) -> None:
    said = [line.partition("identity.")[2] for line in told.lines if "issuers[" in line]
    wrong, closed, inside = sorted(said)
    assert wrong.startswith(f"issuers[1].jwks_url: wrong.gateway.test at port {told.port} has a certificate that")
    assert f"issuers[2].jwks_url: {TOKENS} at port {told.closed} can't be connected to." in closed
    assert "issuers[3].jwks_url: inside.gateway.test leads to 10.1.2.4: add it to [[egress.networks]]." in inside
