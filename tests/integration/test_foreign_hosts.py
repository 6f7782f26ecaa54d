"""A dev gateway refuses requests for a foreign host name or from a page of another origin."""

import httpx
import pytest

from tests.support.gateway import Gateway


def ask(gate: Gateway, path: str, **headers: str) -> httpx.Response:
    return gate.http.get(path, headers=headers)


@pytest.mark.parametrize("path", ["/healthz", "/v1/actions", "/v1/admin/status", "/openapi.json", "/nowhere"])
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.test"}, {"Origin": "http://evil.test"}, {"Origin": "null"}],
    ids=["rebound name", "page of elsewhere", "page without an origin"],
)  # fmt: skip
def test_a_foreign_host_or_origin_is_403(gate: Gateway, path: str, headers: dict[str, str]) -> None:
    answer = ask(gate, path, **headers)
    assert (answer.status_code, answer.json()["error"]) == (403, "foreign_host")


def test_an_operator_whose_browser_was_led_astray_changes_nothing(gate: Gateway) -> None:
    operator, path = gate.operator(), "/v1/admin/drain"
    headers = operator.headers("POST", path) | {"Origin": "http://evil.test"}
    answer = gate.http.post(path, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (403, "foreign_host")
    assert not gate.operator().get("/v1/admin/status").json()["draining"]


def test_its_own_names_and_pages_are_answered(gate: Gateway) -> None:
    port = gate.base.rpartition(":")[2]
    for name in ("localhost", "127.0.0.1", "[::1]"):
        host = f"{name}:{port}"
        assert ask(gate, "/healthz", Host=host, Origin=f"http://{host}").status_code == 200


def test_the_sockets_have_no_names(gate: Gateway) -> None:
    for name in ("client_socket", "admin_socket"):
        answer = gate.over(name).get("/healthz", headers={"Host": "evil.test", "Origin": "http://evil.test"})
        assert answer.status_code == 200
