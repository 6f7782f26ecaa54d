"""Admin socket endpoints: learned domains and learned paths."""

from collections.abc import Iterator

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row

DOMAIN = {"action_id": "any_host", "domain": "rule.gateway.invalid"}
PATH = {"action_id": "few_files", "path": "rule/file.txt"}


@pytest.fixture(autouse=True)
def clean(gate: Deployment) -> Iterator[None]:
    """Remove the rules that a test adds."""
    yield
    gate.operator().delete("/v1/admin/domains/clear")
    gate.operator().delete("/v1/admin/paths/clear")


def pairs(operator: Caller, kind: str) -> list[tuple[str, str]]:
    answer = operator.get(f"/v1/admin/{kind}")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) >= {kind}
    return [(one["action_id"], one[kind.removesuffix("s")]) for one in answer.json()[kind]]


@row("admin-endpoints/domains")
def test_domains_are_listed(operator: Caller) -> None:
    assert pairs(operator, "domains") == []
    operator.post("/v1/admin/domains", DOMAIN)
    assert pairs(operator, "domains") == [("any_host", "rule.gateway.invalid")]


@row("admin-endpoints/domains-add")
def test_a_domain_is_added(operator: Caller) -> None:
    answer = operator.post("/v1/admin/domains", DOMAIN)
    assert answer.status_code == 200
    assert DOMAIN.items() <= answer.json().items()


@row("admin-endpoints/domains-remove")
def test_a_domain_is_removed(operator: Caller) -> None:
    operator.post("/v1/admin/domains", DOMAIN)
    operator.post("/v1/admin/domains", DOMAIN | {"domain": "stays.gateway.invalid"})
    answer = operator.delete("/v1/admin/domains", DOMAIN)
    assert (answer.status_code, answer.json()["removed"]) == (200, True)
    assert pairs(operator, "domains") == [("any_host", "stays.gateway.invalid")]


@row("admin-endpoints/domains-clear")
def test_domains_are_cleared(operator: Caller) -> None:
    operator.post("/v1/admin/domains", DOMAIN)
    answer = operator.delete("/v1/admin/domains/clear")
    assert (answer.status_code, answer.json()["cleared"]) == (200, True)
    assert pairs(operator, "domains") == []


@row("admin-endpoints/paths")
def test_paths_are_listed(operator: Caller) -> None:
    assert pairs(operator, "paths") == []
    operator.post("/v1/admin/paths", PATH)
    assert pairs(operator, "paths") == [("few_files", "rule/file.txt")]


@row("admin-endpoints/paths-add")
def test_a_path_is_added(operator: Caller) -> None:
    answer = operator.post("/v1/admin/paths", PATH)
    assert answer.status_code == 200
    assert PATH.items() <= answer.json().items()


@row("admin-endpoints/paths-remove")
def test_a_path_is_removed(operator: Caller) -> None:
    operator.post("/v1/admin/paths", PATH)
    operator.post("/v1/admin/paths", PATH | {"path": "stays/file.txt"})
    answer = operator.delete("/v1/admin/paths", PATH)
    assert (answer.status_code, answer.json()["removed"]) == (200, True)
    assert pairs(operator, "paths") == [("few_files", "stays/file.txt")]


@row("admin-endpoints/paths-clear")
def test_paths_are_cleared(operator: Caller) -> None:
    operator.post("/v1/admin/paths", PATH)
    answer = operator.delete("/v1/admin/paths/clear")
    assert (answer.status_code, answer.json()["cleared"]) == (200, True)
    assert pairs(operator, "paths") == []
