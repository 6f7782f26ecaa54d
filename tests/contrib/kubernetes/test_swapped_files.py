"""ConfigMaps and Secrets that change below a pod of the form `edge`, laid as the kubelet lays them: by a swap of the
link `..data`. Keys and certificates of the new ones count without a restart."""

import json
import os
import re
import shutil
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.authority import Authority
from tests.support.certificates import made_certificate
from tests.support.client_certificates import uri
from tests.support.gateway import Prover, wait_for
from tests.support.kubernetes import FORMS, Resource, one_of, rendered, resources
from tests.support.manifests import REPOSITORY
from tests.support.pod_contents import PRINCIPAL, PUBLIC_URL, contents, made
from tests.support.pod_replica import Replica
from tests.support.pod_service import PodService
from tests.support.ports import free_port

ISSUER = "https://cluster.example"
IDENTITY = f"""
[[identity.issuers]]
name = "cluster"
issuer = "{ISSUER}"
audience = "{PUBLIC_URL}"
jwks_file = "/etc/gateway/config/jwks.json"
algorithms = ["ES256"]
[identity.issuers.principals.agent]
principal = "{PRINCIPAL}"
[[identity.certificates]]
san = "spiffe://cluster.example/agent/*"
principal = "x509:{{san}}"
"""
HOLDER = uri("spiffe://cluster.example/agent/billing")
Key = ec.EllipticCurvePrivateKey
FOLLOWED_SECONDS = 90
"""The edge looks at its files every 30 s."""


class SwappedPod:
    """The files that the user hands to the cluster, and the pod that has them."""

    def __init__(self, user: Path, folder: Path) -> None:
        self._folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.roots = self._certificate("first")
        self.clients = Authority(folder, "first-clients")
        self._given = contents(user)
        self._given["gateway-config"]["jwks.json"] = _keys(self.key)
        self._given["gateway-edge-tls"] = self._tls()
        spec, settings = _specification()
        self._given["gateway-edge"] = settings
        (folder / "pod").mkdir()
        self._service = PodService()
        self.replica = Replica(spec, self._given, folder / "pod", self._service, self.roots)

    def close(self) -> None:
        self.replica.close()
        self._service.close()

    def change_key(self) -> None:
        """Replace the key that signs the cluster's tokens."""
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._given["gateway-config"]["jwks.json"] = _keys(self.key)
        self._lay("config")

    def change_certificate(self) -> None:
        """Replace the edge's certificate."""
        self.roots = self._certificate("next")
        self._given["gateway-edge-tls"] = self._tls()
        self._lay("edge-tls")

    def change_clients(self) -> None:
        """Replace the root that signs certificates of agents."""
        self.clients = Authority(self._folder, "next-clients")
        self._given["gateway-edge-tls"] = self._tls()
        self._lay("edge-tls")

    def leased_by_certificate(self, clients: Authority) -> int | None:
        """The status of a lease for the holder of a certificate that these have signed; None if the edge refuses it."""
        issued = clients.issue(f"agent-{clients.file.stem}", HOLDER)
        trusted = ssl.create_default_context(cafile=str(self.roots))
        trusted.load_cert_chain(issued.certificate, issued.key)
        with httpx.Client(base_url=self._base, verify=trusted, timeout=60) as http, suppress(httpx.TransportError):
            return self._lease(http)
        return None

    def leased(self, key: Key) -> int:
        """The status of a lease for a token that this key has signed."""
        claims = {"iss": ISSUER, "aud": PUBLIC_URL, "sub": "agent", "exp": int(time.time()) + 3600}
        headers = {"Authorization": f"Bearer {jwt.encode(claims, key, 'ES256', {'kid': 'k'})}"}
        trusted = ssl.create_default_context(cafile=str(self.roots))
        with httpx.Client(base_url=self._base, verify=trusted, timeout=60, headers=headers) as http:
            return self._lease(http)

    @property
    def _base(self) -> str:
        return f"https://127.0.0.1:{self.replica.port}"

    def _lease(self, http: httpx.Client) -> int:
        return http.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": Prover().jwk}).status_code

    def _tls(self) -> dict[str, bytes]:
        files = {"tls.crt": self.roots, "tls.key": self.roots.with_name("key.pem"), "ca.crt": self.clients.file}
        return {name: file.read_bytes() for name, file in files.items()}

    def _certificate(self, name: str) -> Path:
        (self._folder / name).mkdir()
        return made_certificate(self._folder / name, "127.0.0.1")

    def _lay(self, name: str) -> None:
        (volume,) = [one for one in self.replica.pod.spec["volumes"] if one["name"] == name]
        self.replica.pod.fill(volume)


def _keys(key: Key) -> bytes:
    public = {**jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "k"}
    return json.dumps({"keys": [public]}).encode()


def _specification() -> tuple[Resource, dict[str, bytes]]:
    """A pod that shares nothing with others, and the ConfigMap with the settings of its edge."""
    alone = "replicas=1,redis.deploy=false,postgres.deploy=false"
    (asks_clients,) = re.findall(r"--set edge\.tls='(.*)'`", (REPOSITORY / "docs" / "kubernetes.md").read_text())
    found = resources(
        rendered(
            *FORMS["edge"], "--set", f"{alone},edge.port={free_port()}", "--set", f"edge.tls={asks_clients}",
        )
    )  # fmt: skip
    settings = one_of(found, "ConfigMap", "gateway-edge")["data"]
    spec: Resource = one_of(found, "StatefulSet", "gateway")["spec"]["template"]["spec"]
    return spec, {name: text.encode() for name, text in settings.items()}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwappedPod]:
    """Playing a pod needs root; CI has it."""
    if os.geteuid() != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("a pod is played by root, and this is not")
        pytest.skip("a pod is played by root: its containers have users of their own")
    if lacking := [name for name in ("setpriv", "unshare") if shutil.which(name) is None]:
        pytest.skip(f"there is no {', '.join(lacking)}")
    folder = tmp_path_factory.mktemp("cluster")
    user = made(folder / "etc")
    with (user / "gateway.toml").open("a") as file:
        file.write(IDENTITY)
    with closing(SwappedPod(user, folder)) as running:
        running.replica.start()
        yield running


def test_tokens_of_a_swapped_set_of_keys_give_leases_and_those_of_the_one_before_none(cluster: SwappedPod) -> None:
    before = cluster.key
    assert cluster.leased(before) == 200
    cluster.change_key()
    wait_for(lambda: cluster.leased(cluster.key) == 200, "a lease by the new key", FOLLOWED_SECONDS)
    assert cluster.leased(before) == 403


def test_an_edge_shows_the_certificate_of_a_swapped_secret(cluster: SwappedPod) -> None:
    assert cluster.leased(cluster.key) == 200
    cluster.change_certificate()

    def is_shown() -> bool:
        try:
            return cluster.leased(cluster.key) == 200
        except httpx.ConnectError:
            return False

    wait_for(is_shown, "the edge to show the new certificate", FOLLOWED_SECONDS)


def test_certificates_of_a_swapped_root_give_leases_and_those_of_the_one_before_none(cluster: SwappedPod) -> None:
    before = cluster.clients
    assert cluster.leased_by_certificate(before) == 200
    cluster.change_clients()
    wait_for(lambda: cluster.leased_by_certificate(cluster.clients) == 200, "a lease by the new root", FOLLOWED_SECONDS)
    assert cluster.leased_by_certificate(before) is None
