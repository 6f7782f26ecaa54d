"""Tokens of an issuer that a gateway of tests knows, and leases for them."""

import json
import os
import time
from pathlib import Path

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.edge_process import PUBLIC
from tests.support.gateway import Bearer, Prover, config_for
from tests.support.manifests import open_policy, patient
from tests.support.upstream import Upstream

ISSUER = "https://login.example"
KEY = ec.generate_private_key(ec.SECP256R1())


def token(**changes: object) -> str:
    claims = {"iss": ISSUER, "aud": PUBLIC, "sub": "anonymous", "exp": int(time.time()) + 600}
    return jwt.encode(claims | changes, KEY, "ES256", {"kid": "k"})


def behind_an_edge(folder: Path, up: Upstream, public: str = PUBLIC, issuer: str = ISSUER) -> str:
    """Configuration of a gateway whose client socket an edge connects to, and that knows an issuer."""
    key = {**jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "k"}
    (folder / "corp.jwks").write_text(json.dumps({"keys": [key]}))
    policy = open_policy(folder / "policy", "more")
    top = patient(folder / "actions") + f'policy_dir = "{policy}"\npublic_base_url = "{public}"\n'
    return (
        config_for(up.address, top)
        + f"""
[identity]
provider = "peercred"
edge_uids = [{os.geteuid()}]
[[identity.issuers]]
name = "corp"
issuer = "{issuer}"
audience = ["{public}", "{public}/mcp"]
jwks_file = "{folder / "corp.jwks"}"
algorithms = ["ES256"]
[identity.issuers.principals.anonymous]
principal = "dev:anonymous"
"""
    )


def leased(client: httpx.Client) -> Bearer:
    prover = Prover()
    asked = {"scopes": ["tools:call"], "dpop_jwk": prover.jwk}
    answer = client.post("/v1/leases", json=asked, headers={"Authorization": f"Bearer {token()}"})
    assert answer.status_code == 200, answer.text
    return Bearer(client, PUBLIC, answer.json()["lease_jwt"], prover)
