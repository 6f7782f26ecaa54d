"""For any request the answer is one of the documented ones, no refusal is a 5xx, and nothing raises.

One front for all of it, in a thread of its own; its answers are held against docs/openapi.json as they come
(tests/support/front_core.py).
"""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from frontend.http.answers import Answer
from frontend.limits.rates import Rates
from ipc.settings import LimitSettings
from tests.support.front_core import API_KEY, BASE, Agent, Core, signed
from tests.support.policed import policed
from tests.support.proofs import assemble, compact_json, proof

AUTH_CODES = {
    "missing_auth_header", "invalid_lease", "lease_expired", "invalid_dpop", "replay_detected",
    "invalid_operator_token",
}  # fmt: skip


class Unlimited(Rates):
    """No rate: what is fuzzed is what lies behind it."""

    def take(self, name: str, holder: str) -> None:
        """Always."""


class Front:
    def __init__(self, core: Core, agent: Agent, token: trio.lowlevel.TrioToken, stop: trio.Event) -> None:
        self.core, self.agent, self.stop = core, agent, stop
        self._token = token

    def ask(self, method: str, path: str, body: bytes, headers: list[tuple[str, str]]) -> tuple[int, Any]:
        async def go() -> Answer:
            with trio.fail_after(60):
                return await self.core.ask(method, path, body, headers)

        answer = trio.from_thread.run(go, trio_token=self._token)
        return answer.status, json.loads(answer.body) if answer.body else None

    def operate(self, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
        return self.ask(method, path, body, signed(self.core.operator_key, method, path, API_KEY))

    def call(self, path: str, body: bytes) -> tuple[int, Any]:
        return self.ask("POST", path, body, signed(self.agent.key, "POST", path, self.agent.token))


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    folder: Path = tmp_path_factory.mktemp("front")
    made: list[Front] = []
    is_made = threading.Event()

    async def live() -> None:
        many = LimitSettings(session_requests_per_second=100_000)
        async with policed(folder, limits=many, lease_ttl_seconds=3600) as core:
            core.services.rates = Unlimited()
            stop = trio.Event()
            made.append(Front(core, await core.agent(), trio.lowlevel.current_trio_token(), stop))
            is_made.set()
            await stop.wait()

    thread = threading.Thread(target=trio.run, args=(live,))
    thread.start()
    try:
        assert is_made.wait(120)
        yield made[0]
    finally:
        if made:
            trio.from_thread.run_sync(made[0].stop.set, trio_token=made[0]._token)
        thread.join(120)
    assert not thread.is_alive()


# ------------------------------------------------------------------------------------------------ authentication

ROUTES = [
    ("POST", "/v1/actions/echo/execute"), ("GET", "/v1/approvals/apr_x/poll"), ("GET", "/v1/receipts/rcpt_x"),
    ("GET", "/v1/admin/status"), ("GET", "/v1/audit/events"), ("POST", "/v1/admin/reload"),
]  # fmt: skip
ODD = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
CLAIMS = st.sampled_from(["htm", "htu", "iat", "jti", "ath", "typ", "alg", "jwk", "crit", "exp", "nbf", "kid"])


@st.composite
def bent(draw: st.DrawFn, text: str) -> str:
    """A text with something cut out, put in, or put in the place of something else."""
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + draw(st.sampled_from([0, 1, 3, 200])))))
    return text[:start] + draw(ODD) + text[end:]


def in_one_case(authorization: str) -> list[str]:
    """Scheme and token; the case of the scheme does not matter."""
    scheme, _, token = authorization.partition(" ")
    return [scheme.lower(), *token.split()]


@given(st.data(), st.sampled_from(ROUTES), st.sampled_from(["token", "proof", "scheme", "more", "none"]))
def test_whatever_stands_in_the_two_headers_is_refused_by_a_code_of_authentication(
    front: Front, data: st.DataObject, route: tuple[str, str], what: str
) -> None:
    method, path = route
    good = dict(signed(front.agent.key, method, path, front.agent.token))
    headers = dict(good)
    if what == "token":
        headers["authorization"] = "DPoP " + data.draw(bent(front.agent.token) | ODD)
    elif what == "proof":
        headers["dpop"] = data.draw(bent(good["dpop"]) | ODD)
    elif what == "scheme":
        headers["authorization"] = data.draw(bent(good["authorization"]) | ODD)
    sent = list(headers.items())
    if what == "more":
        sent += data.draw(st.lists(st.tuples(st.sampled_from(["dpop", "authorization"]), ODD), min_size=1, max_size=3))
    if what == "none":
        sent = [pair for pair in sent if data.draw(st.booleans())]
    status, body = front.ask(method, path, b"", sent)
    if status == 401:
        assert body["error"] in AUTH_CODES
    else:
        assert dict(sent) == good or in_one_case(headers["authorization"]) == in_one_case(good["authorization"])
        assert status < 500


@given(
    st.sampled_from(ROUTES), st.dictionaries(CLAIMS, VALUES, min_size=1, max_size=3),
    st.dictionaries(CLAIMS, VALUES, max_size=2),
)  # fmt: skip
@example(ROUTES[0], {"jwk": {"kty": "EC"}}, {})
@example(ROUTES[0], {}, {"iat": 10**400})
def test_a_properly_signed_proof_that_says_something_odd_is_refused_or_says_nothing_of_weight(
    front: Front, route: tuple[str, str], header: dict[str, Any], claims: dict[str, Any]
) -> None:
    method, path = route
    agent = front.agent
    text = proof(agent.key, method, BASE + path, agent.token, header=header, **claims)
    status, body = front.ask(method, path, b"", [("authorization", f"DPoP {agent.token}"), ("dpop", text)])
    assert status < 500
    if status == 401:
        assert body["error"] in AUTH_CODES


@given(st.sampled_from(ROUTES), VALUES, VALUES)
def test_a_proof_of_any_json_at_all_is_refused(
    front: Front, route: tuple[str, str], header: object, payload: object
) -> None:
    method, path = route
    text = assemble(front.agent.key, compact_json(header), compact_json(payload))
    headers = [("authorization", f"DPoP {front.agent.token}"), ("dpop", text)]
    status, body = front.ask(method, path, b"", headers)
    assert (status, body["error"] in AUTH_CODES) == (401, True)


# ------------------------------------------------------------------------------------------------ whatever is asked

NAMES = st.sampled_from([
    "trace_id", "action_id", "principal", "session_id", "event_type", "decision", "after", "before", "limit", "status",
    "action", "learn_domain", "learn_path",
]) | st.text(max_size=8)  # fmt: skip
ENDS = st.sampled_from(
    ["", "0", "-1", "1001", "1e3", "allow", "2026-01-31T12:00:00Z", "2026-13-01", "\0", "%", "a" * 600]
)
PAIRS = st.lists(st.tuples(NAMES, ENDS | st.text(max_size=20)), max_size=5)
RAW = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), max_size=60)
QUERIED = [
    "/v1/audit/events", "/v1/approvals", "/v1/admin/intents", "/v1/admin/domains", "/v1/admin/paths",
    "/v1/admin/policy",
]  # fmt: skip


@given(st.sampled_from(QUERIED), PAIRS.map(urlencode) | RAW)
def test_any_query_is_answered_or_refused_as_one(front: Front, path: str, query: str) -> None:
    status, body = front.operate("GET", f"{path}?{query}")
    assert status in (200, 400), (status, body)
    assert status == 200 or body["error"].startswith("invalid_")


SEGMENTS = st.text(max_size=30).map(lambda text: quote(text, safe="")) | RAW.map(lambda text: text.replace("?", "/"))
OPEN = [
    "/v1/approvals/{}", "/v1/receipts/{}", "/v1/admin/policy/{}", "/v1/actions/{}", "/v1/actions/{}/schema/request",
]  # fmt: skip


@given(st.sampled_from(OPEN), SEGMENTS)
def test_any_path_is_found_or_not(front: Front, path: str, segment: str) -> None:
    status, body = front.operate("GET", path.format(segment))
    assert status in (200, 400, 404, 405), (status, body)
    assert status == 200 or set(body) <= {"error", "message"}


BODIES = [
    ("POST", "/v1/leases"), ("POST", "/v1/approvals/apr_x/approve"), ("POST", "/v1/approvals/apr_x/deny"),
    ("POST", "/v1/admin/domains"), ("DELETE", "/v1/admin/domains"), ("POST", "/v1/admin/paths"),
    ("DELETE", "/v1/admin/paths"), ("POST", "/v1/admin/policy/grant"), ("POST", "/v1/admin/policy/revoke"),
    ("POST", "/v1/admin/policy/allowlist"), ("DELETE", "/v1/admin/policy/allowlist"),
]  # fmt: skip
FIELDS = st.sampled_from([
    "scopes", "dpop_jwk", "budgets", "reason", "action_id", "domain", "path", "path_glob", "principal", "actions",
    "agent_id",
])  # fmt: skip
TEXTS = st.sampled_from(
    [
        "echo",
        "nothing",
        "*.a.test",
        "a.test",
        "..",
        "a/*",
        "dev:anonymous",
        "*",
        "\ud800".encode("utf-8", "replace").decode(),
    ]
)
MEMBERS = VALUES | TEXTS | st.lists(TEXTS, max_size=3)
OBJECTS = st.dictionaries(FIELDS | st.text(max_size=6), MEMBERS, max_size=4)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """A body: JSON, JSON with a piece out of place, or no JSON."""
    data = json.dumps(draw(OBJECTS | VALUES), ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    kind = draw(st.sampled_from(["whole", "whole", "cut", "bent", "any"]))
    if kind == "cut":
        return data[: draw(st.integers(0, len(data)))]
    if kind == "bent":
        place = draw(st.integers(0, len(data)))
        return data[:place] + draw(st.binary(min_size=1, max_size=3)) + data[place + 1 :]
    return data if kind == "whole" else draw(st.binary(max_size=60))


@given(st.sampled_from(BODIES), documents())
def test_any_body_is_taken_or_refused_by_a_code_of_the_request(
    front: Front, route: tuple[str, str], data: bytes
) -> None:
    method, path = route
    status, body = front.operate(method, path, data)
    assert status in (200, 400, 403, 404, 409, 422), (status, body)
    assert status == 200 or isinstance(body["error"], str)


@given(documents())
@example(b"[" * 40 + b"]" * 40)
@example(b'{"n":1,"n":2}')
@example(b'{"n":NaN}')
@example(b"\xff")
def test_any_body_of_a_call_is_executed_or_a_schema_violation(front: Front, data: bytes) -> None:
    status, body = front.call("/v1/actions/nothing/execute", data)
    assert (status, body) == (404, {"error": "action_not_found"})
    status, body = front.call("/v1/actions/echo/execute", data)
    if status != 200:
        assert (status, body["error"]) == (422, "schema_violation")
        assert set(body) == {"error", "reason"}
