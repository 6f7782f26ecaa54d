"""Authentication models: what each endpoint takes, and who the caller is."""

from typing import Any

import httpx
import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import BOTH_MODES, row, rows
from tests.conformance.stories import Strangers
from tests.support.gateway import Prover, wait_for

OPERATOR_ROUTES = [
    ("GET", "/v1/approvals"), ("GET", "/v1/approvals/apr_x"), ("POST", "/v1/approvals/apr_x/approve"),
    ("POST", "/v1/approvals/apr_x/deny"), ("GET", "/v1/audit/events"), ("GET", "/v1/audit/verify"),
    ("GET", "/metrics"), ("GET", "/v1/admin/status"), ("POST", "/v1/admin/drain"), ("POST", "/v1/admin/revoke-all"),
    ("GET", "/v1/admin/epoch"), ("POST", "/v1/admin/reload"), ("GET", "/v1/admin/domains"),
    ("POST", "/v1/admin/domains"), ("DELETE", "/v1/admin/domains"), ("DELETE", "/v1/admin/domains/clear"),
    ("GET", "/v1/admin/paths"), ("POST", "/v1/admin/paths"), ("DELETE", "/v1/admin/paths"),
    ("DELETE", "/v1/admin/paths/clear"), ("GET", "/v1/admin/policy"), ("GET", "/v1/admin/policy/clerk"),
    ("POST", "/v1/admin/policy/grant"), ("POST", "/v1/admin/policy/revoke"), ("POST", "/v1/admin/policy/allowlist"),
    ("DELETE", "/v1/admin/policy/allowlist"), ("GET", "/v1/receipt-keys"), ("GET", "/v1/admin/intents"),
]  # fmt: skip


def code(answer: httpx.Response) -> str:
    """The code of a 401."""
    assert answer.status_code == 401, (answer.status_code, answer.text)
    assert answer.headers["www-authenticate"] == "DPoP"
    return str(answer.json()["error"])


def without_right(http: httpx.Client, method: str, path: str, right: Caller, wrong: Caller) -> set[str]:
    """Codes of everything but the right credential."""
    stranger = Caller(http, right.base, right.token, Prover())
    good = right.headers(method, path)
    tries: list[dict[str, str]] = [
        {}, {"Authorization": good["Authorization"]}, {"DPoP": good["DPoP"]},
        good | {"Authorization": f"Bearer {right.token}"}, wrong.headers(method, path), stranger.headers(method, path),
    ]  # fmt: skip
    return {code(http.request(method, path, headers=headers)) for headers in tries}


@BOTH_MODES
@rows(
    "auth-models",
    {
        "lease-execute": ("POST", "/v1/actions/text_digest/execute"),
        "lease-poll": ("GET", "/v1/approvals/{held}/poll"),
        "lease-receipt": ("GET", "/v1/receipts/{receipt}"),
    },
    {"lease-poll": ["other-errors/poll-401"], "lease-receipt": ["other-errors/receipt-401"]},
)
def test_a_route_of_agents_takes_a_lease_and_nothing_else(
    gate: Deployment, agent: Caller, operator: Caller, case: tuple[str, str]
) -> None:
    receipt = agent.execute("text_digest", {"text": "x"}).json()["receipt_id"]
    method, path = case[0], case[1].format(held=gate.held(agent), receipt=receipt)
    with gate.over("client_socket") as http:  # on the merged address receipts are also the operators'
        codes = without_right(http, method, path, agent, operator)
        assert codes <= {"missing_auth_header", "invalid_lease", "invalid_dpop", "invalid_operator_token"}
        body = {"text": "x"} if method == "POST" else None
        good = http.request(method, path, headers=agent.headers(method, path), json=body)
    assert good.status_code == 200, good.text


@BOTH_MODES
@pytest.mark.parametrize(("method", "path"), OPERATOR_ROUTES, ids=str)
@row("auth-models/operator")
def test_a_route_of_operators_takes_an_operators_credential_and_nothing_else(
    gate: Deployment, agent: Caller, operator: Caller, method: str, path: str
) -> None:
    codes = without_right(gate.admin, method, path, operator, agent)
    assert codes <= {"missing_auth_header", "invalid_operator_token", "invalid_dpop"}


@BOTH_MODES
@rows(
    "auth-models",
    {
        "none-healthz": "/healthz",
        "none-readyz": "/readyz",
        "none-jwks": "/.well-known/jwks.json",
        "none-actions": "/v1/actions",
        "none-action": "/v1/actions/text_digest",
        "none-request-schema": "/v1/actions/text_digest/schema/request",
    },
)
def test_a_route_for_everybody_asks_for_nothing(gate: Deployment, case: str) -> None:
    for headers in ({}, {"Authorization": "DPoP nonsense", "DPoP": "nonsense"}):
        wait_for(lambda: gate.client.get(case, headers=headers).status_code == 200, "an answer when it is ready")  # noqa: B023


@BOTH_MODES
@row("auth-models/none-leases", "lease-request/unauthenticated", "client-endpoints/leases")
def test_a_lease_is_had_without_credentials(gate: Deployment) -> None:
    answer = gate.lease({"scopes": ["tools:call"], "dpop_jwk": Prover().jwk})
    assert answer.status_code == 200
    assert {"lease_jwt", "session_id", "lease_jti", "expires_at"} <= set(answer.json())


@BOTH_MODES
@row("auth-models/principal")
def test_the_principal_is_the_identity_providers_and_not_the_callers_word(gate: Deployment) -> None:
    said: dict[str, Any] = {"principal": "admin", "agent_id": "admin", "sub": "admin", "owner": "admin", "epoch": 10**6}
    agent = gate.agent(**said)
    agent.execute("text_digest", {"text": "x"})
    assert (agent.claims["sub"], agent.epoch < 10**6) == (gate.principal, True)
    events = gate.events(session_id=agent.session_id)
    assert {one["principal"] for one in events} == {gate.principal}
    assert {one["identity_method"] for one in events} == {"none" if gate.is_dev else "peercred"}


@row("auth-models/unmapped", "other-errors/leases-403")
def test_a_user_without_a_mapping_gets_no_lease(unknown: Strangers) -> None:
    assert (unknown.socket.status_code, unknown.socket.json()["error"]) == (403, "identity_forbidden")


@row("auth-models/operators-named")
def test_an_operator_is_named_and_bound_to_a_key(gate: Deployment, operator: Caller) -> None:
    stranger = Caller(gate.admin, gate.base, operator.token, Prover())
    assert code(stranger.get("/v1/admin/status")) == "invalid_dpop"
    other = Caller(gate.admin, gate.base, operator.token.replace(f"-{gate.operator_name}-", "-root-"), operator.prover)
    assert code(other.get("/v1/admin/status")) == "invalid_operator_token"
    operator.get("/v1/receipt-keys")
    (event,) = gate.events(event_type="ReceiptKeysRead", limit=1)
    assert event["principal"] == f"operator:{gate.operator_name}"
