"""Upstreams whose certificate is not to be believed, asked by a real worker behind its walls."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.gateway import Gateway, gateway
from tests.support.manifests import example, open_policy, patient, write_manifests
from tests.support.worker_upstream import certificate, ok, upstream

TRUSTED, UNKNOWN, OTHER = "trusted.test", "unknown.test", "other-name.test"


@dataclass(frozen=True)
class Asked:
    """A gateway, whether it trusts an authority beside the system's, and how its calls end."""

    gate: Gateway
    trusts_another: bool

    def ended(self, host: str) -> tuple[int, str | None]:
        """(status, reason in evidence) of a call to an upstream."""
        agent = self.gate.agent()
        answer = agent.execute(host.partition(".")[0], {"path": "a"})
        (event,) = self.gate.events(session_id=agent.session_id, event_type="ActionCall")
        return answer.status_code, event.get("reason")


@pytest.fixture(scope="module", params=["SSL_CERT_FILE", "SSL_CERT_DIR", "the system's"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    folder: Path = tmp_path_factory.mktemp("certificates")
    (folder / "of-others").mkdir()
    (folder / "authorities").mkdir()
    trusted, own = certificate(folder, TRUSTED)
    _, unknown = certificate(folder / "of-others", UNKNOWN)
    (folder / "authorities" / "0a1b2c3d.0").symlink_to(trusted)
    servers = {TRUSTED: own, UNKNOWN: unknown, OTHER: own}
    top = patient(folder / "actions")
    names = [host.partition(".")[0] for host in servers]
    write_manifests(folder / "actions", *(
        example(
            "http_fetch", action_id=name, egress={"allowed_domains": [host]},
            template={"url_template": f"https://{host}/{{+path}}"},
        )
        for name, host in zip(names, servers, strict=True)
    ))  # fmt: skip
    policy = open_policy(folder / "policy", *names)
    with ExitStack() as stack:
        ups = {host: stack.enter_context(upstream(ok(), context)) for host, context in servers.items()}
        lines = "".join(f'"{host}" = "{up.address}"\n' for host, up in ups.items())
        config = f'{top}policy_dir = "{policy}"\n[egress.unsafe_resolve]\n{lines}'
        environments = {
            "SSL_CERT_FILE": {"SSL_CERT_FILE": str(trusted), "SSL_CERT_DIR": str(folder / "of-others")},
            "SSL_CERT_DIR": {"SSL_CERT_FILE": str(folder / "none.pem"), "SSL_CERT_DIR": str(folder / "authorities")},
        }
        environment = environments.get(request.param, {})
        yield Asked(stack.enter_context(gateway(folder, config, **environment)), bool(environment))


def test_a_certificate_is_refused_by_its_reason_and_the_worker_lives_on(asked: Asked) -> None:
    unavailable = "host_io: unavailable: the upstream's certificate"
    self_signed = (502, f"{unavailable} is self-signed and not trusted")
    assert asked.ended(TRUSTED) == ((200, None) if asked.trusts_another else self_signed)
    workers = {process.pid for process in asked.gate.children("worker http")}
    assert asked.ended(UNKNOWN) == self_signed
    not_its_own = (502, f"{unavailable} is not valid for its name")
    assert asked.ended(OTHER) == (not_its_own if asked.trusts_another else self_signed)
    assert workers <= {process.pid for process in asked.gate.children("worker http")}
