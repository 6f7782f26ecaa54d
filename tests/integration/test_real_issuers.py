"""Leases by tokens of issuers that run, or whose own library made them: keys, claims and changes of keys are theirs."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.gateway import Bearer, Gateway, Prover, gateway
from tests.support.go_programs import go_program
from tests.support.manifests import open_policy, patient
from tests.support.openid_provider import CLIENT, SUBJECT, openid_provider

AUDIENCE = "https://gate.example"
Answered = tuple[httpx.Response, Prover]


@contextmanager
def behind_an_edge(folder: Path, row: str, resolve: str = "") -> Iterator[Gateway]:
    """A gateway whose client socket an edge connects to, with this row of an issuer."""
    policy = open_policy(folder / "policy", "more")
    rules = policy / "gateway.rego"
    rules.write_text(rules.read_text() + '\napplies_acl if input.identity_method != "jwt"\n')
    config = f"""{patient(folder / "actions")}policy_dir = "{policy}"
[egress]
unsafe_resolve = {{{resolve}}}
[identity]
provider = "peercred"
edge_uids = [{os.geteuid()}]
[[identity.issuers]]
{row}"""
    with gateway(folder, config) as running:
        yield running


def ask(gate: Gateway, token: str) -> Answered:
    prover = Prover()
    body = {"scopes": ["tools:call"], "dpop_jwk": prover.jwk}
    with gate.over("client_socket") as http:
        return http.post("/v1/leases", json=body, headers={"authorization": f"Bearer {token}"}, timeout=90), prover


def call(gate: Gateway, answered: Answered) -> dict[str, Any]:
    """The event of a call under this lease."""
    answer, prover = answered
    assert answer.status_code == 200, answer.text
    with gate.over("client_socket") as http:
        agent = Bearer(http, gate.base, answer.json()["lease_jwt"], prover)
        assert agent.execute("text_digest", {"text": "a"}).status_code == 200
    (event,) = gate.events(session_id=answer.json()["session_id"], event_type="ActionCall")
    return event


def test_an_id_token_of_an_openid_provider_gives_a_lease_also_after_it_has_changed_its_key(tmp_path: Path) -> None:
    with openid_provider(tmp_path) as openid:
        told = openid.discovered()
        row = f"""name = "openid"
issuer = "{told["issuer"]}"
audience = "{CLIENT}"
jwks_url = "{told["jwks_uri"].replace(f"localhost:{openid.port}", "openid.gateway.test")}"
algorithms = ["RS256"]
require = {{azp = "{CLIENT}", amr = "pwd"}}
[identity.issuers.principals.{SUBJECT}]
principal = "dev:anonymous"
"""
        with behind_an_edge(tmp_path, row, f'"openid.gateway.test" = "{openid.address}"') as gate:
            first = openid.id_token()
            event = call(gate, ask(gate, first))
            assert (event["identity_issuer"], event["identity_subject"]) == (told["issuer"], SUBJECT)
            openid.stop()
            assert ask(gate, first)[0].status_code == 200, "its key is known"
            openid.start()
            call(gate, ask(gate, openid.id_token()))
            refused, _ = ask(gate, first)
            assert (refused.status_code, refused.json()["error"]) == (403, "identity_forbidden"), "its key is withdrawn"


def minted(subject: str, audience: str = AUDIENCE) -> dict[str, Any]:
    """A JWT-SVID and the bundle with its key, by SPIFFE's own library, which takes the one for the other."""
    done = subprocess.run([go_program("jwt-svids"), subject, audience], capture_output=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_jwt_svid_gives_a_lease_by_the_bundle_of_its_trust_domain(tmp_path: Path) -> None:
    subject, bundle = "spiffe://corp.test/agent/billing", tmp_path / "bundles" / "corp.json"
    bundle.parent.mkdir()

    def shown(subject: str, audience: str = AUDIENCE) -> str:
        """A token whose bundle is in force."""
        made = minted(subject, audience)
        fresh = bundle.with_name("next")
        fresh.write_text(json.dumps(made["bundle"]))
        fresh.rename(bundle)
        token: str = made["token"]
        return token

    first = shown(subject)
    row = f"""name = "spiffe"
issuer = "https://corp.test"
audience = "{AUDIENCE}"
jwks_file = "{bundle}"
algorithms = ["ES256"]
[identity.issuers.principals."{subject}"]
principal = "dev:anonymous"
"""
    with behind_an_edge(tmp_path, row) as gate:
        event = call(gate, ask(gate, first))
        assert (event["identity_issuer"], event["identity_subject"]) == ("https://corp.test", subject)
        assert ask(gate, shown("spiffe://corp.test/agent/other"))[0].status_code == 403
        assert ask(gate, shown(subject, "https://else.example"))[0].status_code == 403
        assert ask(gate, first)[0].status_code == 403, "its key is withdrawn"
