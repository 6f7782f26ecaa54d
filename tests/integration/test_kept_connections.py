"""Connections of a whole gateway to its upstreams: which calls go over one, as the upstream sees it."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.gateway import Bearer, Gateway, config_for, gateway
from tests.support.manifests import PATIENT, example, open_policy, write_manifests
from tests.support.upstream import Upstream, upstream
from tests.support.worker_upstream import certificate

HOST = "upstream.gateway.test"
SECONDS = 60.0
BODY = {"path": "messages", "message": "hi"}


@dataclass(frozen=True)
class Stage:
    """A gateway with one http worker, and the upstream of its actions, which speaks TLS."""

    gate: Gateway
    up: Upstream
    secrets: Path

    def rotate(self, value: str) -> None:
        """Give the secret another value."""
        self.secrets.write_text(json.dumps({"upstream_token": value}))

    def post(self, agent: Bearer, action: str) -> int:
        """One call: the connection that it came over, as the upstream knows it."""
        assert agent.execute(action, BODY).status_code == 200
        return self.up.seen[-1].peer

    def kept(self, agent: Bearer, action: str) -> set[int]:
        """All connections of as many calls as it takes until one came over that of the call before. A slow machine may
        need several: a POST never uses a connection that has waited for a second."""
        deadline, used = time.monotonic() + SECONDS, [self.post(agent, action)]
        while time.monotonic() < deadline:
            used.append(self.post(agent, action))
            if used[-1] == used[-2]:
                return set(used)
        raise AssertionError(f"each of {len(used)} calls had a connection of its own")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("kept")
    template = {"url_template": f"https://{HOST}/{{+path}}"}
    names = ("http_post", "another_post")
    write_manifests(
        folder / "actions", *(example("http_post", action_id=name, template=template, **PATIENT) for name in names)
    )
    policy = open_policy(folder / "policy", *names)
    authority, context = certificate(folder, HOST)
    secrets = folder / "secrets.json"
    secrets.touch(mode=0o600)
    top = f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{policy}"\nlease_ttl_seconds = 3600\n'
    tables = f'[secrets]\nfile = "{secrets}"\n[workers.http]\nmin_spare = 1\nmax = 1\n'
    with upstream(context) as up:
        configuration = config_for(up.address, top) + tables
        secrets.write_text(json.dumps({"upstream_token": "token-at-first-71c0"}))
        with gateway(folder, configuration, SSL_CERT_FILE=str(authority)) as running:
            yield Stage(running, up, secrets)


def test_calls_of_one_action_go_over_one_connection_and_another_action_or_secret_has_its_own(stage: Stage) -> None:
    agent = stage.gate.agent()
    first = stage.kept(agent, "http_post")
    other_action = stage.kept(agent, "another_post")
    stage.rotate("token-rotated-5d2e")
    rotated = stage.kept(agent, "http_post")
    assert stage.up.seen[-1].headers["authorization"] == "Bearer token-rotated-5d2e"
    every = first | other_action | rotated
    assert len(every) == len(first) + len(other_action) + len(rotated)
    assert stage.up.handshakes == len(every) < len(stage.up.seen)


def test_each_call_over_a_kept_connection_has_its_own_receipt_and_its_own_request(stage: Stage) -> None:
    agent, before = stage.gate.agent(), len(stage.up.seen)
    answers = [agent.execute("http_post", BODY | {"message": f"number {number}"}) for number in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len({answer.json()["receipt_id"] for answer in answers}) == 3
    assert [one.json()["message"] for one in stage.up.seen[before:]] == ["number 0", "number 1", "number 2"]
