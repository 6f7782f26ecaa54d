"""Proofs and leases that must be refused, sent over the wire to a running gateway."""

import base64
import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.forged_leases import FORGED_LEASES, Forged, Mint, parts_of
from tests.support.gateway import Bearer, Gateway, Prover, config_for, gateway, wait_for
from tests.support.hostile_proofs import HOSTILE_PROOFS, Hostile, Scene
from tests.support.manifests import patient
from tests.support.proofs import Key, proof, used_codes
from tests.support.raw_http import RawConnection, raw, request
from tests.support.upstream import Upstream

EXECUTE = "/v1/actions/text_digest/execute"
BODY = {"text": "x"}
UNSENDABLE = [row for row in HOSTILE_PROOFS if row.name in {"newline in the header", "beyond ASCII"}]
"""What no client library puts into a header, and bytes on a socket can."""
TRAVELLING = [row for row in HOSTILE_PROOFS if row.travels and row not in UNSENDABLE]


@pytest.fixture(scope="module")
def key() -> Key:
    """The key that `lease` is bound to."""
    return Key()


@pytest.fixture(scope="module")
def lease(gate: Gateway, key: Key) -> str:
    """A good lease, with calls enough."""
    return lease_for(gate, key, budgets={"max_calls": 1000})


def lease_for(gate: Gateway, key: Key, **more: Any) -> str:
    answer = gate.http.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": key.jwk} | more)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["lease_jwt"])


def call(gate: Gateway, token: str, proof_text: str) -> httpx.Response:
    headers = {"Authorization": f"DPoP {token}", "DPoP": proof_text}
    return gate.http.post(EXECUTE, headers=headers, json=BODY)


def refused(answer: httpx.Response, code: str) -> None:
    assert (answer.status_code, answer.json()) == (401, {"error": code})
    assert answer.headers["www-authenticate"] == "DPoP"


def good(gate: Gateway, key: Key, token: str, **changes: Any) -> str:
    return proof(key, "POST", gate.base + EXECUTE, token, **changes)


# ------------------------------------------------------------------------------------------------ proofs


@pytest.mark.parametrize("row", TRAVELLING, ids=lambda row: row.name)
def test_a_hostile_proof_is_refused_on_execute(gate: Gateway, key: Key, lease: str, row: Hostile) -> None:
    scene = Scene("POST", gate.base + EXECUTE, lease, time.time(), key)
    refused(call(gate, lease, row.build(scene)), row.code)


@pytest.mark.parametrize("row", UNSENDABLE, ids=lambda row: row.name)
def test_a_proof_that_no_client_would_send_is_refused_too(gate: Gateway, key: Key, lease: str, row: Hostile) -> None:
    text = row.build(Scene("POST", gate.base + EXECUTE, lease, time.time(), key))
    lines = [f"POST {EXECUTE} HTTP/1.1", "Host: x", f"Authorization: DPoP {lease}", f"DPoP: {text}", "", ""]
    for encoding in ("utf-8", "latin-1"):
        with raw(gate.ready["base_url"]) as line:
            reply = line.ask("\r\n".join(lines).encode(encoding), "POST")
        assert reply is not None
        assert (reply.status, reply.json["error"]) in {(401, "invalid_dpop"), (400, "bad_request")}


def test_after_all_of_them_the_same_lease_and_key_are_served(gate: Gateway, key: Key, lease: str) -> None:
    answer = call(gate, lease, good(gate, key, lease))
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", ["/v1/receipts/rcpt_none", "/v1/approvals/apr_none/poll", "/v1/admin/status"])
def test_the_same_proofs_are_refused_on_every_other_kind_of_route(
    gate: Gateway, key: Key, lease: str, operator: Bearer, path: str
) -> None:
    token, holder = (operator.token, Key(operator.prover.key)) if "admin" in path else (lease, key)
    wrong = []
    for row in TRAVELLING:
        text = row.build(Scene("GET", gate.base + path, token, time.time(), holder))
        answer = gate.http.get(path, headers={"Authorization": f"DPoP {token}", "DPoP": text})
        if (answer.status_code, answer.json()) != (401, {"error": row.code}):
            wrong.append((row.name, answer.status_code, answer.text))
    assert not wrong


def test_each_refused_proof_leaves_one_event_with_its_reason(gate: Gateway, key: Key, lease: str) -> None:
    before = len(gate.events(decision="deny", limit=1000))
    rows = TRAVELLING[::8]
    for row in rows:
        call(gate, lease, row.build(Scene("POST", gate.base + EXECUTE, lease, time.time(), key)))
    events = gate.events(decision="deny", limit=1000)
    assert len(events) == before + len(rows)
    for event, row in zip(events, reversed(rows), strict=False):
        assert event["error_code"] == row.code
        assert row.reason in event["reason"]
        assert event["action_id"] == "text_digest"


def test_a_proof_that_does_not_hold_burns_no_jti(gate: Gateway, key: Key, lease: str) -> None:
    scene = Scene("POST", gate.base + EXECUTE, lease, time.time(), key)
    stranger = Key()
    for spoilt in (
        scene.signed_with(stranger.signature),
        proof(stranger, "POST", scene.url, lease, jti="one-of-ours"),
        scene.proof(jti="one-of-ours", htm="PUT"),
        scene.proof(jti="one-of-ours", iat=int(time.time()) - 120),
    ):
        refused(call(gate, lease, spoilt), "invalid_dpop")
    assert call(gate, lease, scene.proof(jti="one-of-ours")).status_code == 200
    refused(call(gate, lease, scene.proof(jti="one-of-ours")), "replay_detected")


def test_a_jti_is_used_up_for_its_key_whatever_else_the_second_proof_says(gate: Gateway, key: Key, lease: str) -> None:
    assert call(gate, lease, good(gate, key, lease, jti="once")).status_code == 200
    refused(call(gate, lease, good(gate, key, lease, jti="once", iat=int(time.time()) - 1)), "replay_detected")
    second = lease_for(gate, key)
    refused(call(gate, second, good(gate, key, second, jti="once")), "replay_detected")
    path = "/v1/receipts/rcpt_none"
    text = proof(key, "GET", gate.base + path, lease, jti="once")
    refused(gate.http.get(path, headers={"Authorization": f"DPoP {lease}", "DPoP": text}), "replay_detected")
    neighbour = Key()
    theirs = lease_for(gate, neighbour)
    assert call(gate, theirs, good(gate, neighbour, theirs, jti="once")).status_code == 200


def test_a_used_proof_is_good_nowhere_else(gate: Gateway, key: Key, lease: str) -> None:
    text = good(gate, key, lease)
    headers = {"Authorization": f"DPoP {lease}", "DPoP": text}
    assert gate.http.post(EXECUTE, headers=headers, json=BODY).status_code == 200
    refused(gate.http.post("/v1/actions/spin/execute", headers=headers, json={}), "invalid_dpop")
    refused(gate.http.get("/v1/receipts/rcpt_none", headers=headers), "invalid_dpop")
    refused(gate.over("client_socket").post(EXECUTE, headers=headers, json=BODY), "replay_detected")
    refused(gate.http.post(EXECUTE + "?again=1", headers=headers, json=BODY), "replay_detected")


def test_what_travels_beside_a_proof_decides_nothing(gate: Gateway, key: Key, lease: str) -> None:
    """`htu` is held against the configured address: no header of the request says what that is."""
    elsewhere = proof(key, "POST", "http://evil.test" + EXECUTE, lease)
    lies = {
        "Host": "evil.test", "X-Forwarded-Host": "evil.test", "Forwarded": "host=evil.test;proto=http",
        "X-Forwarded-Proto": "http", "X-Original-URL": EXECUTE, "X-HTTP-Method-Override": "PUT",
    }  # fmt: skip
    headers = {"Authorization": f"DPoP {lease}", "DPoP": elsewhere} | lies
    refused(gate.http.post(EXECUTE, headers=headers, json=BODY), "invalid_dpop")
    headers["DPoP"] = good(gate, key, lease)
    assert gate.http.post(EXECUTE, headers=headers, json=BODY).status_code == 200


@pytest.mark.parametrize("copies", [50])
def test_of_many_uses_of_one_proof_at_once_exactly_one_wins(gate: Gateway, key: Key, copies: int) -> None:
    token = lease_for(gate, key, budgets={"max_calls": 10})
    headers = {"Authorization": f"DPoP {token}", "DPoP": good(gate, key, token)}
    data = request("POST", EXECUTE, headers, json.dumps(BODY).encode())
    with ExitStack() as stack:
        lines: list[RawConnection] = [stack.enter_context(raw(gate.ready["base_url"])) for _ in range(copies)]
        for line in lines:
            line.send(data[:-1])
        for line in lines:
            line.send(data[-1:])
        replies = [line.reply("POST") for line in lines]
    outcomes = Counter((reply.status, reply.json.get("error")) for reply in replies if reply is not None)
    assert outcomes == {(200, None): 1, (401, "replay_detected"): copies - 1}
    winner = next(reply.json for reply in replies if reply is not None and reply.status == 200)
    event = gate.events(trace_id=winner["trace_id"])[0]
    assert event["budgets_after"] == {"calls_remaining": 9}


# ------------------------------------------------------------------------------------------------ headers


def _headers(gate: Gateway, key: Key, token: str) -> dict[str, str]:
    return {"Authorization": f"DPoP {token}", "DPoP": good(gate, key, token)}


HEADER_ROWS: list[tuple[str, Callable[[dict[str, str]], list[tuple[str, str]]], str]] = [
    ("two proofs", lambda h: [*h.items(), ("DPoP", h["DPoP"][::-1])], "invalid_dpop"),
    ("the same proof twice", lambda h: [*h.items(), ("DPoP", h["DPoP"])], "invalid_dpop"),
    ("a second proof in another case", lambda h: [*h.items(), ("dpop", "x.y.z")], "invalid_dpop"),
    ("two proofs in one header", lambda h: [*_without(h, "DPoP"), ("DPoP", f"{h['DPoP']}, x.y.z")], "invalid_dpop"),
    ("an empty second proof", lambda h: [*h.items(), ("DPoP", "")], "invalid_dpop"),
    ("an empty proof", lambda h: [*_without(h, "DPoP"), ("DPoP", "")], "invalid_dpop"),
    ("two Authorization headers", lambda h: [*h.items(), ("Authorization", "DPoP other")], "missing_auth_header"),
    (
        "the same Authorization twice",
        lambda h: [*h.items(), ("Authorization", h["Authorization"])],
        "missing_auth_header",
    ),
    ("Bearer beside DPoP", lambda h: [*h.items(), ("authorization", "Bearer x")], "missing_auth_header"),
    ("Bearer", lambda h: _with(h, h["Authorization"].replace("DPoP", "Bearer")), "missing_auth_header"),
    ("Basic", lambda h: _with(h, "Basic " + base64.b64encode(b"dev:dev").decode()), "missing_auth_header"),
    ("no scheme", lambda h: _with(h, h["Authorization"].removeprefix("DPoP ")), "missing_auth_header"),
    ("a scheme and nothing else", lambda h: _with(h, "DPoP"), "missing_auth_header"),
    ("two tokens", lambda h: _with(h, h["Authorization"] + ", DPoP other"), "invalid_lease"),
    ("a tab after the scheme", lambda h: _with(h, h["Authorization"].replace(" ", "\t")), "missing_auth_header"),
    ("quoted", lambda h: _with(h, h["Authorization"].replace("DPoP ", 'DPoP "') + '"'), "invalid_lease"),
]


def _without(headers: dict[str, str], name: str) -> list[tuple[str, str]]:
    return [(key, value) for key, value in headers.items() if key != name]


def _with(headers: dict[str, str], authorization: str) -> list[tuple[str, str]]:
    return [*_without(headers, "Authorization"), ("Authorization", authorization)]


@pytest.mark.parametrize(("build", "code"), [row[1:] for row in HEADER_ROWS], ids=[row[0] for row in HEADER_ROWS])
def test_credentials_that_two_readers_could_read_differently_are_refused(
    gate: Gateway, key: Key, lease: str, build: Callable[[dict[str, str]], list[tuple[str, str]]], code: str
) -> None:
    whole = _headers(gate, key, lease)
    refused(gate.http.post(EXECUTE, headers=build(whole), json=BODY), code)
    assert gate.http.post(EXECUTE, headers=whole, json=BODY).status_code == 200  # nothing of it was used up


def test_the_case_of_the_scheme_does_not_matter(gate: Gateway, key: Key, lease: str) -> None:
    whole = _headers(gate, key, lease)
    headers = whole | {"Authorization": whole["Authorization"].replace("DPoP", "dpop")}
    assert gate.http.post(EXECUTE, headers=headers, json=BODY).status_code == 200


# ------------------------------------------------------------------------------------------------ leases


@pytest.mark.parametrize("row", FORGED_LEASES, ids=lambda row: row.name)
def test_a_forged_lease_is_refused(gate: Gateway, key: Key, lease: str, row: Forged) -> None:
    token = row.build(Mint.of(gate.state, lease))
    refused(call(gate, token, good(gate, key, token)), row.code)


def test_the_mint_of_these_tests_makes_leases_that_hold(gate: Gateway, key: Key, lease: str) -> None:
    token = Mint.of(gate.state, lease).claims(jti="lea_minted")
    assert token != lease
    assert call(gate, token, good(gate, key, token)).status_code == 200


def test_a_lease_is_bound_to_its_key_even_when_the_gateway_signed_another_binding(
    gate: Gateway, key: Key, lease: str
) -> None:
    thief = Key()
    refused(call(gate, lease, proof(thief, "POST", gate.base + EXECUTE, lease)), "invalid_dpop")
    moved = Mint.of(gate.state, lease).claims(cnf={"jkt": thief.jkt})
    refused(call(gate, moved, good(gate, key, moved)), "invalid_dpop")


def test_a_lease_ends_with_its_time_even_when_it_was_used_a_moment_before(gate: Gateway, key: Key, lease: str) -> None:
    for seconds in (1, 4, 16, 64):  # a machine may be too slow to use a lease that is so short
        now = int(time.time())
        token = Mint.of(gate.state, lease).claims(jti=f"lea_{now}_{seconds}", iat=now, nbf=now, exp=now + seconds)
        answers: list[httpx.Response] = []

        def has_expired(token: str = token, answers: list[httpx.Response] = answers) -> bool:
            answers.append(call(gate, token, good(gate, key, token)))
            return answers[-1].status_code != 200

        wait_for(has_expired, f"the end of a lease of {seconds} s", 120)
        refused(answers[-1], "lease_expired")
        if answers[0].status_code == 200:
            return
    raise AssertionError("no lease was good for a moment")


def test_an_expired_lease_is_refused_before_its_proof_is_looked_at_and_on_every_route(
    gate: Gateway, key: Key, lease: str
) -> None:
    old = Mint.of(gate.state, lease).claims(iat=10**9, nbf=10**9, exp=10**9 + 300)
    refused(call(gate, old, "no.proof.atall"), "lease_expired")
    for path in ("/v1/receipts/rcpt_x", "/v1/approvals/apr_x/poll"):
        text = proof(key, "GET", gate.base + path, old)
        refused(gate.http.get(path, headers={"Authorization": f"DPoP {old}", "DPoP": text}), "lease_expired")


# ------------------------------------------------------------------------------------------------ lease requests

_X = "WKn-ZIGevcwGIyyrzFoZNBdaq9_TsqzGl96oc0CWuis"
_Y = "y77t-RvAHRKTsSGdIYUfweuOvwrvDD-Q3Hv5J0fSKbE"
BAD_KEYS: dict[str, Any] = {
    "missing": None,
    "text": "key",
    "a list": [],
    "empty": {},
    "off the curve": {"kty": "EC", "crv": "P-256", "x": _X, "y": _X},
    "zero": {"kty": "EC", "crv": "P-256", "x": "A" * 43, "y": "A" * 43},
    "beyond the field": {"kty": "EC", "crv": "P-256", "x": "_" * 42 + "8", "y": _Y},
    "short": {"kty": "EC", "crv": "P-256", "x": _X[:-2], "y": _Y},
    "long": {"kty": "EC", "crv": "P-256", "x": "AA" + _X, "y": _Y},
    "padded": {"kty": "EC", "crv": "P-256", "x": _X + "=", "y": _Y},
    "a number": {"kty": "EC", "crv": "P-256", "x": 1, "y": _Y},
    "another curve": {"kty": "EC", "crv": "P-384", "x": _X, "y": _Y},
    "secp256k1": {"kty": "EC", "crv": "secp256k1", "x": _X, "y": _Y},
    "RSA": {"kty": "RSA", "n": _X, "e": "AQAB"},
    "symmetric": {"kty": "oct", "k": _X},
    "Edwards": {"kty": "OKP", "crv": "Ed25519", "x": _X},
    "private": {"kty": "EC", "crv": "P-256", "x": _X, "y": _Y, "d": _X},
}


@pytest.mark.parametrize("jwk", BAD_KEYS.values(), ids=BAD_KEYS)
def test_no_lease_is_bound_to_what_is_no_public_key_on_the_curve(gate: Gateway, jwk: Any) -> None:
    answer = ask_for_lease(gate, {"scopes": ["tools:call"], "dpop_jwk": jwk})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert answer.json()["message"].startswith("dpop_jwk")
    assert _X not in answer.text


BAD_REQUESTS: dict[str, dict[str, Any]] = {
    "no scopes": {"scopes": []},
    "scopes a text": {"scopes": "tools:call"},
    "a scope without colon": {"scopes": ["toolscall"]},
    "a scope in capitals": {"scopes": ["Tools:Call"]},
    "a scope with a line break": {"scopes": ["tools:call\n"]},
    "scopes without end": {"scopes": ["tools:call"] * 100},
    "no calls": {"budgets": {"max_calls": 0}},
    "fewer than none": {"budgets": {"max_calls": -1}},
    "half a call": {"budgets": {"max_calls": 1.5}},
    "calls in words": {"budgets": {"max_calls": "5"}},
    "calls true": {"budgets": {"max_calls": True}},
    "calls beyond counting": {"budgets": {"max_calls": 10**30}},
    "budgets a list": {"budgets": [5]},
}


@pytest.mark.parametrize("changes", BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_a_lease_request_that_will_not_do_is_400_and_names_the_field(
    gate: Gateway, key: Key, changes: dict[str, Any]
) -> None:
    answer = ask_for_lease(gate, {"scopes": ["tools:call"], "dpop_jwk": key.jwk} | changes)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert answer.json()["message"].startswith(next(iter(changes)))


def test_unknown_scopes_and_unknown_budgets_give_no_right(gate: Gateway, key: Key, lease: str) -> None:
    body = {
        "scopes": ["tools:call"],
        "dpop_jwk": key.jwk,
        "budgets": {"max_money": 5},
        "principal": "admin",
        "epoch": 9,
    }
    token = ask_for_lease(gate, body).json()["lease_jwt"]
    claims = parts_of(token)[1]
    assert (claims["sub"], claims["cnf"]) == ("dev:anonymous", {"jkt": key.jkt})
    assert claims["epoch"] == parts_of(lease)[1]["epoch"]
    assert "budgets" not in claims


def ask_for_lease(gate: Gateway, body: dict[str, Any]) -> httpx.Response:
    """Ask until the rate of lease requests allows it."""
    found: list[httpx.Response] = []

    def has_answer() -> bool:
        found.append(gate.http.post("/v1/leases", json=body))
        return found[-1].status_code != 429

    wait_for(has_answer, "an answer within the rate")
    return found[-1]


# ------------------------------------------------------------------------------------------------ operators

OPERATOR_ROUTES = [
    ("GET", "/v1/approvals"),
    ("GET", "/v1/approvals/apr_x"),
    ("POST", "/v1/approvals/apr_x/approve"),
    ("POST", "/v1/approvals/apr_x/deny"),
    ("GET", "/v1/audit/events"),
    ("GET", "/v1/audit/verify"),
    ("GET", "/v1/receipt-keys"),
    ("GET", "/v1/admin/status"),
    ("GET", "/v1/admin/intents"),
    ("POST", "/v1/admin/drain"),
]


@pytest.mark.parametrize(("method", "path"), OPERATOR_ROUTES, ids=str)
def test_no_operator_route_takes_a_lease_or_another_key_or_nothing(
    gate: Gateway, agent: Bearer, operator: Bearer, method: str, path: str
) -> None:
    answer = gate.http.request(method, path, headers=agent.headers(method, path))
    refused(answer, "invalid_operator_token")
    stranger = Bearer(gate.http, gate.base, operator.token, Prover())
    refused(gate.http.request(method, path, headers=stranger.headers(method, path)), "invalid_dpop")
    refused(gate.http.request(method, path), "missing_auth_header")
    alone = {"Authorization": f"DPoP {operator.token}"}
    refused(gate.http.request(method, path, headers=alone), "missing_auth_header")
    assert operator.get("/v1/admin/status").json()["draining"] is False


def test_an_operator_key_that_is_not_one_is_told_apart_from_nothing(gate: Gateway, operator: Bearer) -> None:
    real = operator.token
    for wrong in (
        real[:-1], real + "0", real.upper(), real.replace("dev", "root"), "key-dev-", "key-dev-" + "0" * 32, "key--",
        "dev", real[::-1],
    ):  # fmt: skip
        bearer = Bearer(gate.http, gate.base, wrong, operator.prover)
        refused(bearer.get("/v1/admin/status"), "invalid_operator_token")


def test_no_agent_route_takes_an_operator_key(gate: Gateway, operator: Bearer) -> None:
    refused(operator.execute("text_digest", BODY), "invalid_lease")
    refused(operator.get("/v1/approvals/apr_x/poll"), "invalid_lease")
    operator.http = gate.over("client_socket")
    refused(operator.get("/v1/receipts/rcpt_x"), "invalid_lease")


def test_an_operator_proof_is_good_once_and_for_one_act(gate: Gateway, operator: Bearer) -> None:
    headers = operator.headers("GET", "/v1/admin/status")
    assert gate.http.get("/v1/admin/status", headers=headers).status_code == 200
    refused(gate.http.get("/v1/admin/status", headers=headers), "replay_detected")
    refused(gate.http.get("/v1/admin/intents", headers=headers), "invalid_dpop")
    headers = operator.headers("GET", "/v1/approvals/apr_x")
    refused(gate.http.post("/v1/approvals/apr_x/approve", headers=headers), "invalid_dpop")


# ------------------------------------------------------------------------------------------------ restarts


def test_a_proof_used_before_a_restart_is_refused_after_it_and_a_lease_of_another_gateway_is_worth_nothing(
    gate: Gateway, tmp_path: Path, up: Upstream
) -> None:
    key, settings = Key(), patient(tmp_path / "actions")
    with gateway(tmp_path, config_for(up.address, settings)) as other:
        base = other.base
        token = lease_for(other, key)
        refused(call(gate, token, good(gate, key, token)), "invalid_lease")
        signed_at = time.time()
        used = proof(key, "POST", base + EXECUTE, token)
        looked = other.operator().headers("GET", "/v1/admin/status")
        assert call(other, token, used).status_code == 200
        assert other.http.get("/v1/admin/status", headers=looked).status_code == 200
        assert other.stop() == 0
    with gateway(tmp_path, config_for(up.address, f'{settings}public_base_url = "{base}"')) as other:
        for answer in (call(other, token, used), other.http.get("/v1/admin/status", headers=looked)):
            assert (answer.status_code, answer.json()["error"] in used_codes(signed_at)) == (401, True), answer.text
        signed_at = time.time()
        used = proof(key, "POST", base + EXECUTE, token)
        assert call(other, token, used).status_code == 200
        other.child("front").kill()
        wait_for(lambda: _status(other), "a new front")
        answer = call(other, token, used)
        assert (answer.status_code, answer.json()["error"] in used_codes(signed_at)) == (401, True), answer.text


def _status(gate: Gateway) -> int:
    try:
        return gate.http.get("/healthz").status_code
    except httpx.TransportError:
        return 0
