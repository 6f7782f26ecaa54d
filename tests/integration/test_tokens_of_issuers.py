"""A whole gateway whose client socket an edge connects to: a token gives a lease, with which calls are made as with any
other, and the file of keys is followed behind the walls of the front."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ipc.process.clock import parse_iso
from tests.support.gateway import Bearer, Gateway, Prover, config_for, gateway
from tests.support.manifests import open_policy, patient
from tests.support.upstream import Upstream

ISSUER, AUDIENCE = "https://login.example", "https://gate.example"
FIRST, NEXT = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

ORIGIN = ("identity_method", "identity_issuer", "identity_subject")
KNOWN = f'[input.identity_method, input.identity_issuer, input.identity_subject] != ["jwt", "{ISSUER}", "anonymous"]'
"""A condition of policy: the caller is another than the one of these tests."""


def put_in_force(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    public = {**jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "k"}
    fresh = file.with_name("next")
    fresh.write_text(json.dumps({"keys": [public]}))
    fresh.rename(file)


def token(key: ec.EllipticCurvePrivateKey, lives: int = 3000) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "anonymous", "exp": int(time.time()) + lives}
    return jwt.encode(claims, key, "ES256", {"kid": "k"})


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file: Path = tmp_path_factory.mktemp("keys") / "corp.jwks"
    put_in_force(file, FIRST)
    return file


@pytest.fixture(scope="module")
def gate(up: Upstream, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("edge")
    policy = open_policy(folder / "policy", "more")
    rules = policy / "gateway.rego"
    rules.write_text(rules.read_text() + f"\napplies_acl if {KNOWN}\n")
    top = patient(folder / "actions") + f'policy_dir = "{policy}"\n'
    identity = f"""
[identity]
provider = "peercred"
edge_uids = [{os.geteuid()}]
[[identity.issuers]]
name = "corp"
issuer = "{ISSUER}"
audience = "{AUDIENCE}"
jwks_file = "{keys}"
algorithms = ["ES256"]
[identity.issuers.principals.anonymous]
principal = "dev:anonymous"
"""
    with gateway(folder, config_for(up.address, top) + identity) as running:
        yield running


def lease(gate: Gateway, shown: str, prover: Prover) -> httpx.Response:
    body = {"scopes": ["tools:call"], "dpop_jwk": prover.jwk}
    with gate.over("client_socket") as http:
        return http.post("/v1/leases", json=body, headers={"authorization": f"Bearer {shown}"})


def test_a_token_gives_a_lease_and_its_calls_say_how_their_caller_is_known(gate: Gateway) -> None:
    prover = Prover()
    shown = token(FIRST, 90)
    answer = lease(gate, shown, prover)
    assert answer.status_code == 200, answer.text
    given: dict[str, Any] = answer.json()
    assert parse_iso(given["expires_at"]) <= time.time() + 90
    with gate.over("client_socket") as http:
        called = Bearer(http, gate.base, given["lease_jwt"], prover).execute("text_digest", {"text": "a"})
    assert called.status_code == 200, called.text
    (issued,), (call,) = gate.events(event_type="LeaseIssued"), gate.events(event_type="ActionCall")
    assert call["lease_jti"] == issued["lease_jti"]
    assert [call[name] for name in ORIGIN] == [issued[name] for name in ORIGIN] == ["jwt", ISSUER, "anonymous"]
    assert shown.split(".")[1] not in "".join(map(json.dumps, gate.lines()))


def test_the_file_of_keys_is_followed(gate: Gateway, keys: Path) -> None:
    put_in_force(keys, NEXT)
    assert lease(gate, token(FIRST), Prover()).status_code == 403
    assert lease(gate, token(NEXT), Prover()).status_code == 200
    keys.write_text("")
    refused = lease(gate, token(NEXT), Prover())
    assert (refused.status_code, refused.json()["error"]) == (503, "identity_provider_unavailable")
