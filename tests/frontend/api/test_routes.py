"""The table and its dispatch: what every request gets, whichever row it meets."""

import re
import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from frontend.api.dispatch import KNOWN_PATHS, MAX_KNOWN_CHARACTERS, RouteTable
from frontend.api.route import Auth
from frontend.api.routes import ROUTES
from frontend.http.answers import Answer
from frontend.http.requests import CompleteBody, Request
from frontend.notary.errors import NotaryUnavailable
from tests.support.coded import Coded
from tests.support.front_core import API_KEY, Core, front_core, refuses, signed
from tests.support.held_calls import held, state_of

EXECUTE = "/v1/actions/echo/execute"


def body_of(answer: Answer) -> Any:
    return msgspec.json.decode(answer.body)


SEGMENTS = {"{action_id}": "echo", "{approval_id}": "apr_1", "{receipt_id}": "rcpt_1", "{principal}": "ann:1"}


def a_path(pattern: str) -> str:
    for name, value in SEGMENTS.items():
        pattern = pattern.replace(name, value)
    return pattern


def methods_of(path: str) -> set[str]:
    """The methods of every row that a path fits: a name such as `grant` may also be a principal's."""
    return {route.method for route in ROUTES if re.fullmatch(re.sub(r"{\w+}", "[^/]+", route.path), path)}


async def test_a_method_that_a_path_does_not_have_is_405_with_those_it_has(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        for path in sorted({a_path(route.path) for route in ROUTES}):
            methods = methods_of(path)
            wanted = methods | ({"HEAD"} if "GET" in methods else set())
            for method in {"OPTIONS", "PUT", "PATCH", "TRACE", "BREW", "HEAD", "GET", "POST", "DELETE"} - wanted:
                answer = await core.ask(method, path)
                assert (answer.status, body_of(answer)) == (405, {"error": "method_not_allowed"}), (method, path)
                assert dict(answer.headers)["Allow"] == ", ".join(sorted(wanted)), (method, path)


def test_each_socket_has_its_own_half_and_the_merged_address_all() -> None:
    client, admin, merged = (RouteTable(kind) for kind in ("client", "admin", "merged"))
    for route in ROUTES:
        path = a_path(route.path)
        assert route in [match.route for match in merged.find(path)]
        for table, name in ((client, "client"), (admin, "admin")):
            assert (route in [match.route for match in table.find(path)]) == (name in route.sockets)


def test_a_table_asked_again_says_the_same_and_remembers_a_bounded_number_of_paths() -> None:
    client, merged = RouteTable("client"), RouteTable("merged")
    paths = [*{a_path(route.path) for route in ROUTES}, "/", "/v1", "/v1/actions/", "/v1/actions//execute"]
    asked = {path: merged.find(path) for path in paths}
    assert {path: merged.find(path) for path in paths} == asked
    assert client.find("/v1/admin/status") == () == client.find("/v1/admin/status")
    for number in range(2 * KNOWN_PATHS):
        (match,) = merged.find(f"/v1/actions/a{number}/execute")
        assert match.identifiers() == [f"a{number}"]
    assert len(merged._known) == KNOWN_PATHS
    assert {path: merged.find(path) for path in paths} == asked


def test_a_path_that_has_no_row_or_is_long_is_not_remembered() -> None:
    table = RouteTable("merged")
    assert table.find("/nothing") == ()
    (match,) = table.find(f"/v1/actions/{'a' * MAX_KNOWN_CHARACTERS}/execute")
    assert match.route.path.endswith("/execute")
    assert not table._known


async def test_the_document_is_there_in_dev_mode_only(tmp_path: Path) -> None:
    for dev_mode in (True, False):
        async with front_core(tmp_path / str(dev_mode), workers=0, dev_mode=dev_mode) as core:
            for method, there in (("GET", 200), ("HEAD", 200), ("POST", 405), ("OPTIONS", 405)):
                answer = await core.ask(method, "/openapi.json")
                assert answer.status == (there if dev_mode else 404)


@pytest.mark.parametrize("action_id", ["no~id", "%65cho", "-", "x" * 300])
async def test_a_call_of_what_can_be_no_action_is_refused_as_one_of_an_unknown_action(
    tmp_path: Path, action_id: str
) -> None:
    path = f"/v1/actions/{action_id}/execute"
    async with front_core(tmp_path, workers=0) as core:
        agent = await core.agent()
        assert (await core.ask("POST", path)).status == 401, "only a caller with a lease is told"
        headers = signed(agent.key, "POST", path, agent.token)
        answer = await core.ask("POST", path, {}, headers)
        assert (answer.status, body_of(answer)) == (404, {"error": "action_not_found"})
        assert (await core.ask("POST", path, {}, headers)).status == 401, "its proof was used"
        codes = [event["error_code"] for event in await core.events(event_type="ActionCall")]
        assert codes == ["replay_detected", "action_not_found", "missing_auth_header"]
        core.services.admission.drain()
        assert (await agent.send("POST", path, {})).status == 503


async def test_a_preview_of_what_can_be_no_action_leaves_its_event(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        answer = await (await core.agent()).send("POST", "/v1/actions/no~id/preview", {})
        assert (answer.status, body_of(answer)) == (404, {"error": "action_not_found"})
        form = {"principal": "agent"}
        status, _ = await core.operate("POST", "/v1/admin/actions/no~id/preview", form)
        assert status == 404
        codes = [event["error_code"] for event in await core.events(event_type="ActionPreviewed")]
        assert codes == ["action_not_found"] * 2


# ------------------------------------------------------------------ what a body says it is


@pytest.mark.parametrize(
    ("types", "status"),
    [
        ([], 200),
        (["application/json"], 200),
        (["application/json; charset=utf-8"], 200),
        (["Application/JSON"], 200),
        (["text/plain"], 415),
        (["application/x-www-form-urlencoded"], 415),
        (["multipart/form-data; boundary=x"], 415),
        (["application/jsonp"], 415),
        ([""], 415),
        (["application/json", "text/plain"], 415),
        (["application/json", "application/json"], 415),
    ],
    ids=str,
)
async def test_a_body_that_says_what_it_is_must_say_json(core: Core, types: list[str], status: int) -> None:
    agent = await core.agent()
    headers = signed(agent.key, "POST", EXECUTE, agent.token) + [("content-type", one) for one in types]
    answer = await core.ask("POST", EXECUTE, {"n": 1}, headers)
    assert answer.status == status
    if status == 415:
        assert body_of(answer) == {"error": "unsupported_media_type"}
        assert await core.events(event_type="ActionCall") == [], "refused before admission, as an unknown path is"


@pytest.mark.parametrize(
    ("codings", "status"),
    [
        (["identity"], 200), ([""], 200), (["Identity", "identity"], 200), (["gzip"], 415), (["br"], 415),
        (["GZIP, identity"], 415), (["identity", "gzip"], 415), (["aes128gcm"], 415),
    ],
    ids=str,
)  # fmt: skip
async def test_an_encoded_body_is_refused_instead_of_read_as_it_is(core: Core, codings: list[str], status: int) -> None:
    agent = await core.agent()
    headers = signed(agent.key, "POST", EXECUTE, agent.token) + [("content-encoding", one) for one in codings]
    answer = await core.ask("POST", EXECUTE, {"n": 1}, headers)
    assert answer.status == status
    if status == 415:
        message = "a body has no Content-Encoding: send it as it is"
        assert body_of(answer) == {"error": "unsupported_media_type", "message": message}


async def test_an_empty_body_may_be_called_anything(core: Core) -> None:
    _agent, approval_id = await held(core)
    path = f"/v1/approvals/{approval_id}/deny"
    form = [("content-type", "application/x-www-form-urlencoded"), ("content-length", "0")]
    form.append(("content-encoding", "gzip"))
    answer = await core.ask("POST", path, b"", signed(core.operator_key, "POST", path, API_KEY) + form)
    assert answer.status == 200


async def test_a_chunked_body_has_to_say_json_too(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        headers = [("content-type", "text/plain"), ("transfer-encoding", "chunked")]
        request = Request("POST", "/v1/leases", headers=headers, body=CompleteBody(b"{}"))
        assert (await core.dispatch.respond(request)).status == 415


# ------------------------------------------------------------------ traces


def trace_of(answer: Answer) -> str:
    (trace_id,) = [value for name, value in answer.headers if name == "X-Trace-Id"]
    assert re.fullmatch(r"trc_[0-9a-f-]{36}", trace_id)
    return trace_id


async def test_the_answer_to_a_call_and_to_a_decision_carries_the_trace_of_the_call(core: Core) -> None:
    agent, approval_id = await held(core)
    trace_id = (await core.events(event_type="ActionCall"))[0]["trace_id"]
    for verb, status in (("approve", 200), ("approve", 404)):
        path = f"/v1/approvals/{approval_id}/{verb}"
        answer = await core.ask("POST", path, b"", signed(core.operator_key, "POST", path, API_KEY))
        assert answer.status == status
        assert (trace_of(answer) == trace_id) == (status == 200)
    refused = await agent.send("POST", EXECUTE, b"{")
    assert trace_of(refused) == (await core.events(event_type="ActionCall"))[0]["trace_id"]


async def test_every_answer_has_a_trace_of_its_own_that_its_events_have_too(core: Core) -> None:
    for method, path in (
        ("GET", "/v1/actions"), ("GET", "/nowhere"), ("PUT", "/healthz"), ("GET", "/healthz"),
        ("GET", "/v1/admin/status"),
    ):  # fmt: skip
        trace_of(await core.ask(method, path))
    traces = [trace_of(await core.ask("GET", "/v1/actions")) for _ in range(3)]
    assert len(set(traces)) == 3
    path = "/v1/admin/drain"
    answer = await core.ask("POST", path, b"", signed(core.operator_key, "POST", path, API_KEY))
    assert [one["trace_id"] for one in await core.events(event_type="AdminDrain")] == [trace_of(answer)]


# ------------------------------------------------------------------ who is asking


@pytest.mark.parametrize("scheme", ["DPoP", "dpop", "DPOP"])
async def test_a_receipt_is_shown_to_agents_and_operators_alike_on_the_merged_address(core: Core, scheme: str) -> None:
    agent = await core.agent()
    _, done = await agent.call()
    path = f"/v1/receipts/{done['receipt_id']}"
    shown = []
    for key, token in ((agent.key, agent.token), (core.operator_key, API_KEY)):
        headers = [(name, value.replace("DPoP ", f"{scheme} ")) for name, value in signed(key, "GET", path, token)]
        answer = await core.ask("GET", path, b"", headers)
        assert answer.status == 200
        shown.append(answer.body)
    assert shown[0] == shown[1]


async def test_without_credentials_it_is_401_whatever_path_query_and_body_say(tmp_path: Path) -> None:
    routes = [route for route in ROUTES if route.auth not in (Auth.NONE, Auth.DEV)]
    assert len(routes) > 20
    async with front_core(tmp_path, workers=0) as core:
        for route in routes:
            core.services.rates._buckets.clear()
            path = a_path(route.path)
            odd = re.sub("rcpt_1|apr_1|ann:1", "no%20identifier", path)
            for target in (path, f"{path}?limit=nonsense&limit=2", odd):
                answer = await core.ask(route.method, target, b"{" if route.method != "GET" else b"")
                assert (answer.status, body_of(answer)) == (401, Coded("missing_auth_header")), (route, target)
                assert dict(answer.headers)["WWW-Authenticate"] == "DPoP"


# ------------------------------------------------------------------ malformed requests

QUERIES = {
    "unknown": "/v1/approvals?color=red", "twice": "/v1/approvals?limit=1&limit=2", "no value": "/v1/approvals?limit",
    "no number": "/v1/approvals?limit=ten", "zero": "/v1/approvals?limit=0", "too many": "/v1/approvals?limit=201",
    "no state": "/v1/approvals?status=expired", "events": "/v1/audit/events?limit=1001",
    "time": "/v1/audit/events?after=yesterday", "decision": "/v1/audit/events?decision=maybe",
    "intents": "/v1/admin/intents?limit=-1", "bytes": "/v1/audit/events?principal=%ff%00&x=1",
    "empty time": "/v1/audit/events?before=", "long": f"/v1/audit/events?principal={'x' * 600}",
}  # fmt: skip


async def test_a_query_out_of_its_bounds_is_400_with_the_field(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        for name, path in QUERIES.items():
            status, body = await core.operate("GET", path)
            assert (status, body["error"]) == (400, "invalid_request"), name
            assert body["message"]


BODIES = {
    "half": b"{", "list": b"[]", "text": b'"x"', "twice": b'{"reason":"a","reason":"b"}', "unknown": b'{"why":"x"}',
    "number": b'{"reason":1}', "not utf-8": b'{"reason":"\xff"}', "deep": b'{"reason":' + b"[" * 9999,
    "surrogate": b'{"reason":"\\ud800"}', "big": b'{"reason":1' + b"0" * 5000 + b"}",
}  # fmt: skip


async def test_a_malformed_body_of_an_operator_is_400_and_decides_nothing(core: Core) -> None:
    _agent, approval_id = await held(core)
    for (name, body), verb in product(BODIES.items(), ("deny", "approve")):
        if verb == "approve" and name in ("number", "unknown"):
            continue  # an approve has no use for what is in its body
        object.__setattr__(core.services, "rates", type(core.services.rates)())
        status, answer = await core.operate("POST", f"/v1/approvals/{approval_id}/{verb}", body)
        assert (status, answer["error"]) == (400, "invalid_request"), (name, verb, answer)
        assert answer["message"]
    assert await state_of(core, approval_id) == "pending"


async def test_a_change_with_an_unknown_parameter_is_400_and_changes_nothing(core: Core) -> None:
    _agent, approval_id = await held(core)
    for path in (f"/v1/approvals/{approval_id}/deny", "/v1/admin/drain", "/v1/admin/revoke-all"):
        status, body = await core.operate("POST", f"{path}?dry_run=true")
        assert (status, body) == (
            400,
            {"error": "invalid_request", "message": "unknown query parameter; known are: none"},
        )
    status, body = await core.operate("DELETE", "/v1/admin/domains/clear?acton=echo")
    assert (status, body["message"]) == (400, "unknown query parameter; known are: action")
    assert await state_of(core, approval_id) == "pending"
    assert not core.services.admission.is_draining


# ------------------------------------------------------------------ stores that fail, seen from every endpoint


async def test_a_store_that_fails_is_503_wherever_it_is_needed(core: Core) -> None:
    agent, approval_id = await held(core)
    gone = refuses(NotaryUnavailable("gone"))
    for operation in ("GetHold", "ListHolds", "MoveHold"):
        core.client.faults[operation] = gone
    for method, path in (
        ("GET", "/v1/approvals"),
        ("GET", f"/v1/approvals/{approval_id}"),
        ("POST", f"/v1/approvals/{approval_id}/approve"),
        ("POST", f"/v1/approvals/{approval_id}/deny"),
    ):
        assert await core.operate(method, path) == (503, {"error": "approval_store_unavailable"})
    assert (await agent.send("GET", f"/v1/approvals/{approval_id}/poll")).status == 503
    core.client.faults["UseProof"] = gone
    assert await core.operate("GET", "/v1/approvals") == (503, {"error": "replay_cache_unavailable"})
    with trio.fail_after(60):
        assert (await core.ask("GET", "/healthz")).status == 200


async def test_a_lease_is_issued_without_budgets_unless_it_has_one_to_keep(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as database, database:
            database.execute("ALTER TABLE budgets RENAME TO lost")
        body: dict[str, Any] = {"scopes": ["tools:call"], "dpop_jwk": core.operator_key.jwk}
        assert (await core.ask("POST", "/v1/leases", body)).status == 200
        answer = await core.ask("POST", "/v1/leases", body | {"budgets": {"max_calls": 1}})
        assert (answer.status, body_of(answer)) == (503, {"error": "budget_store_unavailable"})
        assert (await core.ask("POST", "/v1/leases", body)).status == 200
