"""A real squid that refuses clients without user and password, by http and by https, and a gateway that has them as a
secret."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from ipc.process.exits import Exit
from tests.support.gateway import Bearer, Gateway, gateway, wait_for
from tests.support.manifests import PATIENT, example, write_manifests
from tests.support.processes import GATEWAY
from tests.support.proxied import HOST, TOKEN, policy_for, through, through_tls
from tests.support.squid import Squid, squid
from tests.support.upstream import upstream
from tests.support.worker_upstream import Upstream as SafeUpstream
from tests.support.worker_upstream import certificate, ok
from tests.support.worker_upstream import upstream as safe_upstream

PASSWORD = "canary-of-a-proxy"


@dataclass
class Stage:
    """The observed requests."""

    folder: Path
    gate: Gateway
    proxy: Squid
    safe: SafeUpstream
    """The upstream that speaks TLS."""

    def keep(self, **secrets: str) -> None:
        """These are the secrets from now on."""
        fresh = self.folder / "secrets.new"
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(secrets))
        fresh.rename(self.folder / "secrets" / "all.json")

    def call(self, agent: Bearer) -> tuple[int, str | None]:
        """(status, reason in evidence) of a call that goes through the proxy."""
        answer = agent.execute("through", {"path": "a"})
        return answer.status_code, self.reason_of(answer)

    def call_safe(self, agent: Bearer) -> tuple[int, str | None]:
        """The same, to the upstream that speaks TLS, with a secret for it."""
        answer = agent.execute("through_tls", {"path": "a", "message": "b"})
        return answer.status_code, self.reason_of(answer)

    def reason_of(self, answer: httpx.Response) -> str | None:
        (event,) = self.gate.events(trace_id=answer.headers["x-trace-id"])
        return event.get("reason")


@pytest.fixture(scope="module", params=["http", "https"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("credentials")
    authority, context = certificate(folder, HOST)
    proxys_authority, _ = certificate(folder, "localhost")
    with upstream() as up, safe_upstream(ok(b'{"ok":true}'), context) as safe:
        port, safe_port = (int(one.address.rpartition(":")[2]) for one in (up, safe))
        speaks = ("localhost", folder / "localhost.key.pem") if request.param == "https" else None
        with squid((HOST,), (port, safe_port), credentials=f"gw:{PASSWORD}", certificate=speaks) as proxy:
            write_manifests(
                folder / "actions", through("through", HOST, port), through_tls("through_tls", HOST, safe_port),
                example("text_digest", **PATIENT),
            )  # fmt: skip
            policy_for(folder / "policy", "dev", "through", "through_tls")
            (folder / "secrets").mkdir()
            text = f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{folder / "policy"}"\n'
            text += f'lease_ttl_seconds = 3600\negress_proxy_url = "{proxy.url}"\n[egress]\nproxy_secret = "way"\n'
            if speaks:
                text += f'proxy_ca_file = "{proxys_authority}"\n'
            text += f'[secrets]\nfile = "{folder / "secrets" / "all.json"}"\n'
            stage = Stage(folder, None, proxy, safe)  # type: ignore[arg-type]  # which needs its secrets first
            stage.keep(way=f"gw:{PASSWORD}", upstream_token=TOKEN)
            with gateway(folder, text, SSL_CERT_FILE=str(authority)) as gate:
                stage.gate = gate
                yield stage


def check(at: Stage) -> tuple[int, str]:
    """`gateway check --connect`."""
    command = [GATEWAY, "check", "--dev", "--config", str(at.folder / "gateway.toml"), "--connect"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def test_a_call_goes_through_a_proxy_that_wants_credentials_and_nothing_shows_them(at: Stage) -> None:
    agent = at.gate.agent()
    assert at.call(agent) == (200, None)
    assert at.call_safe(agent) == (200, None)
    sent = b"".join(at.safe.requests)
    assert (TOKEN.encode() in sent, b"roxy-" in sent, PASSWORD.encode() in sent) == (True, False, False)
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    wait_for(lambda: any(line.status == 200 for line in at.proxy.lines()), "the tunnel in squid's log")
    wait_for(lambda: at.gate.http.get("/readyz").json()["egress_proxy"] is True, "a proxy that is known to answer")
    assert check(at)[0] == Exit.OK
    ledger = b"".join(one.read_bytes() for one in at.gate.state.glob("ledger.sqlite3*"))
    for shown in (at.gate.log.read_bytes(), ledger, at.gate.operator().get("/metrics").content):
        assert PASSWORD.encode() not in shown


def test_what_the_proxy_does_not_take_and_what_is_missing_is_told_apart_and_followed_without_a_restart(
    at: Stage,
) -> None:
    agent = at.gate.agent()
    at.keep(way="gw:of-another", upstream_token=TOKEN)
    assert at.call(agent) == (502, "host_io: denied: the egress proxy does not take the credentials")
    code, said = check(at)
    assert (code, "egress.proxy_secret: the proxy was shown it" in said) == (Exit.UNAVAILABLE, True), said
    at.keep(upstream_token=TOKEN)
    status, reason = at.call(agent)
    assert (status, "the secret way is not in the secrets file" in str(reason)) == (502, True)
    code, said = check(at)
    assert (code, "egress.proxy_secret: the secret way is not in secrets.file" in said) == (Exit.CONFIG, True), said
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200, "what needs no proxy needs no secret of it"
    at.keep(way=f"gw:{PASSWORD}", upstream_token=TOKEN)
    assert at.call(agent) == (200, None)


def test_a_proxy_whose_certificate_is_by_somebody_else_is_told_before_and_while_it_serves(at: Stage) -> None:
    if not at.proxy.url.startswith("https:"):
        assert check(at)[0] == Exit.OK
        return
    text = (at.folder / "gateway.toml").read_text()
    try:
        (at.folder / "gateway.toml").write_text(text.replace("localhost.pem", f"{HOST}.pem"))
        code, said = check(at)
        assert (code, "its certificate is self-signed and not trusted" in said) == (Exit.UNAVAILABLE, True), said
        (at.folder / "gateway.toml").write_text(text.replace("localhost.pem", "gateway.toml"))
        code, said = check(at)
        assert (code, "can't be read as certificates in PEM" in said) == (Exit.CONFIG, True), said
    finally:
        (at.folder / "gateway.toml").write_text(text)
