"""A stranger's tool reads the document and tries every operation of a running gateway: neither surprises the other."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import allow_header_conformance, ignored_auth
from schemathesis.specs.openapi.checks import positive_data_acceptance

from frontend.api.handlers import intents, standing, token_proofs, webhooks
from frontend.api.openapi.document import document
from frontend.api.route import Auth, Route
from frontend.api.routes import ROUTES
from frontend.limits.bucket import SharedBucket
from frontend.limits.rates import PER_SECOND
from tests.support.gateway import Bearer, Gateway
from tests.support.own_gateway import own_gateway

PACE = 0.95
"""The share of a row's allowed requests in a second."""
EXAMPLE = "01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c"
"""The ending of the document's example identifiers."""
BEYOND_SCHEMAS = {"invalid_domain", "invalid_path", "invalid_input", "unknown_action", "schema_violation"}
"""Answers to a body with a valid form: schemas know nothing of actions, names and registrations."""
ENDS_OTHERS = r"/v1/admin/(drain|revoke-all)"
"""Operations that end the work of all callers: tried last."""
RULED = ("/paths", "/audit/proof", "/audit/summary", "/evidence/erase", "/policy/thresholds", "/policy/caps")
"""Ends of paths whose forms have rules between members."""
SAME_FORMS = r"^DELETE /v1/admin/(domains|paths|policy/allowlist)$"
"""Bodies of a form that another row takes: their every corner is tried there, since twenty a second take their time."""
EXAMPLES = document(ROUTES)["paths"]
SCHEMA = schemathesis.openapi.from_dict(document(ROUTES))
LESS = schemathesis.openapi.from_dict(document(ROUTES))
LESS.config.phases.coverage.enabled = False
PATTERNS = [(route, re.compile(re.sub(r"{\w+}", "[^/]*", route.path))) for route in ROUTES]
BOUNDED = settings(
    max_examples=3, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def row_of(method: str | None, path: str) -> Route | None:
    """The row that a request is for; the one for agents where there are two."""
    routes = [route for route, pattern in PATTERNS if route.method == method and pattern.fullmatch(path)]
    return min(routes, key=lambda route: "{" in route.path, default=None)


class Visitor(requests.Session):
    """Signs each request as it goes out, no faster than its row lets anybody ask, and remembers what became of it."""

    def __init__(self, gate: Gateway) -> None:
        super().__init__()
        self.trust_env = False
        self.gate = gate
        self.operator = gate.operator()
        self.agent = gate.agent()
        self.holder = gate.agent()
        self.holds = 0
        self.receipt_id = self.agent.execute("text_digest", {"text": "x"}).json()["receipt_id"]
        self.shown = self.held(self.agent)
        self.ending = gate.agent().session_id
        """A session that an operator may end, again and again."""
        self.waiting: str | None = None
        """A pending approval."""
        for path in (
            "domains",
            "paths",
            "policy/allowlist",
            "policy/thresholds",
            "policy/caps",
        ):  # what the examples take away
            body = EXAMPLES[f"/v1/admin/{path}"]["post"]["requestBody"]["content"]["application/json"]["example"]
            assert self.operator.post(f"/v1/admin/{path}", body).status_code == 200
        self.buckets = {name: SharedBucket(rate * PACE, max(1, rate * PACE - 5)) for name, rate in PER_SECOND.items()}
        self.answers: Counter[tuple[str, str, int]] = Counter()

    def held(self, bearer: Bearer | None = None) -> str:
        """The id of a call that waits for an operator; twenty a session may."""
        self.holds += 1
        if self.holds % 20 == 0:
            self.holder = self.gate.agent()
        wish = {"to": "acct-7", "amount_cents": self.holds, "currency": "EUR"}
        return str((bearer or self.holder).execute("payment_transfer", wish).json()["approval_id"])

    def prove(self) -> None:
        """No example names what only this gateway has written."""
        empty = {"Authorization": "", "DPoP": ""}
        self.get(f"{self.gate.base}/v1/audit/proof", params={"receipt_id": self.receipt_id}, headers=empty)
        self.get(f"{self.gate.base}/v1/audit/summary", headers=empty)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        assert request.url is not None
        if EXAMPLE in request.url:  # the examples' names, for something that is there
            self.waiting = self.waiting or self.held()
            approval = self.shown if request.method == "GET" else self.waiting
            known = {"apr": approval, "rcpt": self.receipt_id, "ses": self.ending}
            for prefix, name in known.items():
                request.url = request.url.replace(f"{prefix}_{EXAMPLE}", name)
        path = urlsplit(request.url).path
        row = row_of(request.method, path)
        if row is None:
            return super().send(request, **options)
        if row.auth not in (Auth.NONE, Auth.DEV):
            bearer = self.operator if row.auth is Auth.OPERATOR else self.agent
            # A header that the tool leaves out is left out: it wants to know what happens.
            signed = bearer.headers(row.method, path).items()
            request.headers.update({name: value for name, value in signed if name in request.headers})
        self.wait_for_turn(row)
        answer = super().send(request, **options)
        self.answers[row.method, row.path, answer.status_code] += 1
        if answer.ok and row.path.endswith(("/approve", "/deny")):
            self.waiting = None
        return answer

    def wait_for_turn(self, row: Route) -> None:
        bucket = self.buckets.get(row.rate.value)
        while bucket is not None and (seconds := bucket.take("visitor")) is not None:
            time.sleep(seconds)


gate = own_gateway(text_digest={"preview": True}, is_spared=True)


@pytest.fixture(scope="module")
def visitor(gate: Gateway) -> Iterator[Visitor]:
    """Visits one gateway with every operation but those that end it."""
    with Visitor(gate) as session:
        session.prove()
        yield session


def try_out(case: Any, visitor: Visitor) -> None:
    """Send one case and hold the answer against the document with every check of the tool."""
    if isinstance(case.body, dict) and isinstance(case.body.get("dpop_jwk"), dict):
        # Not in place: the document's own example may be what is sent.
        case.body = case.body | {"dpop_jwk": with_a_point(case.body["dpop_jwk"], visitor.agent.prover.jwk)}
    answer = case.call(base_url=visitor.gate.base, session=visitor)
    assert answer.status_code != 429
    assert answer.status_code < 500 or answer.json()["error"] == "action_execution_failed"
    excluded = [ignored_auth]  # it repeats requests with their proofs: see tests/conformance/test_auth_models.py
    code = answer.json()["error"] if answer.status_code in (400, 422) else None
    if code in BEYOND_SCHEMAS or (code == "invalid_request" and case.path.endswith(RULED)):
        excluded.append(positive_data_acceptance)
    if case.path.startswith("/v1/admin/policy/"):
        excluded.append(allow_header_conformance)  # `grant` and its like are names that a principal may have, too
    case.validate_response(answer, excluded_checks=excluded)


def with_a_point(jwk: dict[str, Any], real: dict[str, str]) -> dict[str, Any]:
    """No schema can say what lies on a curve: two coordinates that look like a point become one."""
    if all(isinstance(jwk.get(name), str) and re.fullmatch(r"[A-Za-z0-9_-]{43}", jwk[name]) for name in ("x", "y")):
        return jwk | {"x": real["x"], "y": real["y"]}
    return jwk


@LESS.include(name_regex=SAME_FORMS).parametrize()
@BOUNDED
def test_an_operation_that_undoes_another_does_what_the_document_says(case: Any, visitor: Visitor) -> None:
    try_out(case, visitor)


@SCHEMA.exclude(path_regex=ENDS_OTHERS).exclude(name_regex=SAME_FORMS).parametrize()
@BOUNDED
def test_an_operation_does_what_the_document_says(case: Any, visitor: Visitor) -> None:
    try_out(case, visitor)


@SCHEMA.include(path_regex=ENDS_OTHERS).parametrize()
@BOUNDED
def test_an_operation_that_ends_others_does_what_the_document_says(case: Any, visitor: Visitor) -> None:
    try_out(case, visitor)


def test_every_row_was_visited_and_showed_its_good_side(visitor: Visitor) -> None:
    good = {(method, path) for method, path, status in visitor.answers if status < 300}
    # No call of a sound gateway stays without an end: tests/integration/test_unresolved_intents.py has some.
    of_unresolved = {intents.show, intents.verify, intents.resolve}
    # This gateway has no endpoint to be told anything: tests/integration/test_webhook_letters.py has some.
    of_endpoints = {webhooks.test, webhooks.redeliver}
    # No example is signed for this gateway: tests/frontend/calls/test_standing.py signs some.
    of_signed = {standing.add, standing.revoke}
    # No edge is before this gateway: tests/edge/test_mcp_proofs.py has one.
    of_edges = {token_proofs.judge}
    left_out = of_unresolved | of_endpoints | of_signed | of_edges
    assert good == {(row.method, row.path) for row in ROUTES if row.handler not in left_out}
    refused = {path for _, path, status in visitor.answers if status == 401}
    assert refused == {row.path for row in ROUTES if row.auth not in (Auth.NONE, Auth.DEV)}
