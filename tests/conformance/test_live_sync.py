"""Behaviour rule 3 in live-sync mode: the egress proxy's allow-list file, after a change and after a clear."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.deployment import CLOSED, Caller, Deployment, deployment
from tests.conformance.marks import row

NEW = {"action_id": "any_host", "domain": "new.gateway.invalid"}
WILD = {"action_id": "http_host", "domain": "*.partner.gateway.invalid"}


@pytest.fixture(scope="module")
def gate(mode: str, dev: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A gateway of this kind in live-sync mode."""
    folder: Path = tmp_path_factory.mktemp(f"live-sync-{mode}")
    (folder / "proxy").mkdir(mode=0o755)
    tables = f'[egress]\nproxy_allowlist_file = "{folder / "proxy" / "domains"}"\n'
    with deployment(mode, folder, top=f'egress_proxy_url = "http://{CLOSED}"\n', tables=tables) as running:
        yield running


def entries(gate: Deployment) -> set[str]:
    """The entries of the proxy's file, as the proxy reads them."""
    lines = (gate.folder / "proxy" / "domains").read_text().splitlines()
    return {line for line in lines if not line.startswith("#")}


def declared(gate: Deployment) -> set[str]:
    """The domains that all manifests allow."""
    ids = [item["action_id"] for item in gate.client.get("/v1/actions").json()]
    manifests = [gate.client.get(f"/v1/actions/{name}").json() for name in ids]
    return {domain for manifest in manifests for domain in manifest["egress"]["allowed_domains"]}


@row("behaviour/3-live-sync")
def test_an_added_domain_is_in_the_proxys_file_with_the_answer(gate: Deployment, operator: Caller) -> None:
    try:
        for body in (NEW, WILD):
            assert operator.post("/v1/admin/domains", body).status_code == 200
        assert entries(gate) == declared(gate) | {"new.gateway.invalid", ".partner.gateway.invalid"}
        assert operator.delete("/v1/admin/domains", NEW).status_code == 200
        assert entries(gate) == declared(gate) | {".partner.gateway.invalid"}
    finally:
        operator.delete("/v1/admin/domains/clear")


@row("behaviour/3-live-sync-clear")
def test_a_clear_leaves_the_manifests_domains_alone_in_the_proxys_file(gate: Deployment, operator: Caller) -> None:
    for body in (NEW, WILD):
        assert operator.post("/v1/admin/domains", body).status_code == 200
    assert operator.delete("/v1/admin/domains/clear").json() == {"cleared": True, "count": 2}
    assert entries(gate) == declared(gate) != set()
