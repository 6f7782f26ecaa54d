"""A dev gateway refuses requests for a foreign host name or from a page of another origin.

That it answers to its own names, and a socket to any, is the row dpop-rules/1-public-base-url of tests/conformance.
"""

import pytest

from tests.support.gateway import Gateway


@pytest.mark.parametrize("path", ["/healthz", "/v1/actions", "/v1/admin/status", "/openapi.json", "/nowhere"])
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.test"}, {"Origin": "http://evil.test"}, {"Origin": "null"}],
    ids=["rebound name", "page of elsewhere", "page without an origin"],
)  # fmt: skip
def test_a_foreign_host_or_origin_is_403(gate: Gateway, path: str, headers: dict[str, str]) -> None:
    answer = gate.http.get(path, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (403, "foreign_host")


def test_an_operator_whose_browser_was_led_astray_changes_nothing(gate: Gateway) -> None:
    operator, path = gate.operator(), "/v1/admin/drain"
    headers = operator.headers("POST", path) | {"Origin": "http://evil.test"}
    answer = gate.http.post(path, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (403, "foreign_host")
    assert not gate.operator().get("/v1/admin/status").json()["draining"]
