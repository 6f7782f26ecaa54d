"""Leases by tokens of issuers that run: their keys, their claims and the change of their keys are their own."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.gateway import Bearer, Gateway, Prover, gateway
from tests.support.manifests import open_policy, patient
from tests.support.openid_provider import CLIENT, SUBJECT, OpenIdProvider, openid_provider


@dataclass
class Site:
    gate: Gateway
    openid: OpenIdProvider

    def ask(self, token: str) -> tuple[httpx.Response, Prover]:
        prover = Prover()
        body = {"scopes": ["tools:call"], "dpop_jwk": prover.jwk}
        with self.gate.over("client_socket") as http:
            return http.post("/v1/leases", json=body, headers={"authorization": f"Bearer {token}"}, timeout=90), prover

    def last_call(self, answer: httpx.Response, prover: Prover) -> dict[str, Any]:
        """The event of a call under this lease."""
        assert answer.status_code == 200, answer.text
        with self.gate.over("client_socket") as http:
            agent = Bearer(http, self.gate.base, answer.json()["lease_jwt"], prover)
            assert agent.execute("text_digest", {"text": "a"}).status_code == 200
        (event,) = self.gate.events(session_id=answer.json()["session_id"], event_type="ActionCall")
        return event


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with openid_provider(tmp_path) as openid:
        told = openid.discovered()
        at = told["jwks_uri"].replace(f"localhost:{openid.port}", "openid.gateway.test")
        policy = open_policy(tmp_path / "policy", "more")
        rules = policy / "gateway.rego"
        rules.write_text(rules.read_text() + '\napplies_acl if input.identity_method != "jwt"\n')
        config = f"""{patient(tmp_path / "actions")}policy_dir = "{policy}"
[egress]
unsafe_resolve = {{"openid.gateway.test" = "{openid.address}"}}
[identity]
provider = "peercred"
edge_uids = [{os.geteuid()}]
[[identity.issuers]]
name = "openid"
issuer = "{told["issuer"]}"
audience = "{CLIENT}"
jwks_url = "{at}"
algorithms = ["RS256"]
require = {{azp = "{CLIENT}", amr = "pwd"}}
[identity.issuers.principals.{SUBJECT}]
principal = "dev:anonymous"
"""
        with gateway(tmp_path, config) as running:
            yield Site(running, openid)


def test_an_id_token_of_an_openid_provider_gives_a_lease_also_after_it_has_changed_its_key(site: Site) -> None:
    first = site.openid.id_token()
    event = site.last_call(*site.ask(first))
    told = site.openid.discovered()
    assert (event["identity_issuer"], event["identity_subject"]) == (told["issuer"], SUBJECT)
    site.openid.stop()
    assert site.ask(first)[0].status_code == 200, "its key is known"
    site.openid.start()
    site.last_call(*site.ask(site.openid.id_token()))
    refused, _ = site.ask(first)
    assert (refused.status_code, refused.json()["error"]) == (403, "identity_forbidden"), "its key was withdrawn"
