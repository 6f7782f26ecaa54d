"""Requests that are well-formed and make no sense: any method, path, query, header and body, signed or not."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from frontend.api.routes import ROUTES
from tests.support.documented import check_answer
from tests.support.gateway import Bearer, Gateway
from tests.support.own_gateway import own_gateway
from tests.support.raw_http import raw, request

ENDS_OTHERS = {"/v1/admin/drain", "/v1/admin/revoke-all", "/v1/admin/reload"}
WORDS = sorted({word for route in ROUTES for word in route.path.split("/") if "{" not in word})
NAMES = [
    "", "a" * 300, "text_digest", "apr_1", "rcpt_1", "dev:anonymous", "nobody", "*", "..", ".", "%2e", "%00", "%", "~",
]  # fmt: skip
PARAMETERS = ["limit", "status", "after", "before", "decision", "learn_domain", "action", "principal", "x", ""]
VALUES = [
    "", "9" * 30, "1", "0", "-1", "pending", "2026-01-01T00:00:00Z", "2026-02-30T25:00:00+99:99", "%ff", "%00", "a.b",
]  # fmt: skip

printable = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="?#"), max_size=12)
names = st.sampled_from(NAMES) | printable
tails = st.sampled_from(["", "", "", "", "/", "//", "/..", ";x"])
methods = st.sampled_from(["GET", "HEAD", "PUT", "OPTIONS"]) | st.from_regex(r"[A-Z]{1,12}", fullmatch=True)
targets = st.one_of(
    st.builds(
        lambda route, name, tail: (route.method, re.sub(r"{\w+}", lambda _found: name, route.path) + tail),
        st.sampled_from(ROUTES), names, tails,
    ),
    st.tuples(methods, st.lists(st.sampled_from(WORDS) | names, max_size=6).map(lambda parts: "/" + "/".join(parts))),
)  # fmt: skip
queries = st.lists(
    st.tuples(st.sampled_from(PARAMETERS) | printable, st.sampled_from(VALUES) | printable), max_size=4
).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from([
    "reason", "action_id", "domain", "path", "principal", "actions", "agent_id", "scopes", "dpop_jwk", "budgets",
])  # fmt: skip
fitting = st.sampled_from(["text_digest", "dev:anonymous", ["text_digest"], "a.example", ["tools:call"]])
bodies = st.one_of(
    st.none(),
    st.binary(max_size=40),
    values.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(fields, values | fitting).map(lambda body: json.dumps(body).encode()),
)  # fmt: skip
types = st.sampled_from(["application/json", "Application/JSON; charset=x", "text/plain", "", "a/b;c", ";"])


gate = own_gateway(is_spared=True)
"""Must be the same front at the end as at the start, and never have been surprised."""


@pytest.fixture(scope="module")
def bearers(gate: Gateway) -> dict[str, Bearer | None]:
    return {"agent": gate.agent(), "operator": gate.operator(), "nobody": None}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@example(("GET", "/v1/approvals"), "limit=" + "1" * 5000, "operator", None, "")
@example(("POST", "/v1/admin/domains"), "", "operator", b'{"action_id": ' + b"[" * 30000, "application/json")
@example(("POST", "/v1/leases"), "", "nobody", b'{"scopes": ' + b'{"a":' * 990 + b"1" + b"}" * 991, "application/json")
@example(("POST", "/v1/admin/domains"), "", "operator", b'{"action_id": "\\u0000", "domain": ""}', "application/json")
@given(targets, queries, st.sampled_from(["agent", "operator", "nobody"]), bodies, types)
def test_a_request_that_makes_no_sense_gets_an_answer_that_the_document_has(
    gate: Gateway,
    bearers: dict[str, Bearer | None],
    target: tuple[str, str],
    query: str,
    who: str,
    body: Any,
    kind: str,
) -> None:
    (method, path), bearer = target, bearers[who]
    if path in ENDS_OTHERS or method == "CONNECT":
        return
    headers = {"Content-Type": kind} if body is not None else {}
    if bearer is not None:
        headers |= bearer.headers(method, path)
    if body is not None:
        headers["Content-Length"] = str(len(body))
    with raw(gate.ready["base_url"]) as connection:
        answer = connection.ask(request(method, f"{path}?{query}" if query else path, headers) + (body or b""), method)
    assert answer is not None
    assert answer.status < 500, answer
    if method == "HEAD":
        assert answer.body == b""
    elif answer.headers["content-type"] == "application/json":
        assert answer.status < 400 or re.fullmatch(r"[a-z_]+", str(answer.json["error"]))
    check_answer(method, path, answer.status, answer.headers["content-type"], answer.body)
