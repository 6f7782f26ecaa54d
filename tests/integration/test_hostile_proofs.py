"""Proofs that must be refused, sent over the wire to a running gateway: a proof of each kind, replays, and headers.

`tests/frontend/auth/test_dpop_hostile.py` has the whole table of hostile proofs.
"""

import json
import time
from collections import Counter
from contextlib import ExitStack

import pytest

from tests.support.coded import Coded
from tests.support.gateway import Bearer, Gateway
from tests.support.hostile_proofs import HOSTILE_PROOFS, ONE_OF_EACH_KIND, Hostile, Scene
from tests.support.proofs import Key, proof
from tests.support.proved_calls import BODY, EXECUTE, call, good, lease_for, refused
from tests.support.raw_http import RawConnection, raw, request

UNSENDABLE = [row for row in HOSTILE_PROOFS if row.name in {"newline in the header", "beyond ASCII"}]
"""Bytes that no client library puts into a header, sent over a socket."""


@pytest.fixture(scope="module")
def gate(shared_by_two: Gateway) -> Gateway:
    """A gateway with two fronts: what holds there holds with one."""
    return shared_by_two


# ------------------------------------------------------------------------------------------------ proofs


@pytest.mark.parametrize("row", ONE_OF_EACH_KIND, ids=lambda row: row.name)
def test_a_hostile_proof_is_refused_on_execute(gate: Gateway, key: Key, lease: str, row: Hostile) -> None:
    scene = Scene("POST", gate.base + EXECUTE, lease, time.time(), key)
    refused(call(gate, lease, row.build(scene)), row.code)


@pytest.mark.parametrize("row", UNSENDABLE, ids=lambda row: row.name)
def test_a_proof_that_no_client_would_send_is_refused_too(gate: Gateway, key: Key, lease: str, row: Hostile) -> None:
    text = row.build(Scene("POST", gate.base + EXECUTE, lease, time.time(), key))
    lines = [f"POST {EXECUTE} HTTP/1.1", "Host: localhost", f"Authorization: DPoP {lease}", f"DPoP: {text}", "", ""]
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
    for row in ONE_OF_EACH_KIND:
        text = row.build(Scene("GET", gate.base + path, token, time.time(), holder))
        answer = gate.http.get(path, headers={"Authorization": f"DPoP {token}", "DPoP": text})
        if (answer.status_code, answer.json()) != (401, Coded(row.code)):
            wrong.append((row.name, answer.status_code, answer.text))
    assert not wrong


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
    """`htu` is held against the configured address: no header of the request says what that is.

    On a socket: over TCP a dev gateway refuses such a Host before that.
    """
    client = gate.over("client_socket")
    elsewhere = proof(key, "POST", "http://evil.test" + EXECUTE, lease)
    lies = {
        "Host": "evil.test", "X-Forwarded-Host": "evil.test", "Forwarded": "host=evil.test;proto=http",
        "X-Forwarded-Proto": "http", "X-Original-URL": EXECUTE, "X-HTTP-Method-Override": "PUT",
    }  # fmt: skip
    headers = {"Authorization": f"DPoP {lease}", "DPoP": elsewhere} | lies
    refused(client.post(EXECUTE, headers=headers, json=BODY), "invalid_dpop")
    headers["DPoP"] = good(gate, key, lease)
    assert client.post(EXECUTE, headers=headers, json=BODY).status_code == 200


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


HEADER_ROWS: dict[str, tuple[list[tuple[str, str]], str]] = {
    "two proofs": ([("Authorization", "DPoP LEASE"), ("DPoP", "PROOF"), ("DPoP", "x.y.z")], "invalid_dpop"),
    "a second one in another case": (
        [("Authorization", "DPoP LEASE"), ("DPoP", "PROOF"), ("dpop", "x.y.z")], "invalid_dpop",
    ),
    "two in one header": ([("Authorization", "DPoP LEASE"), ("DPoP", "PROOF, x.y.z")], "invalid_dpop"),
    "the same Authorization twice": (
        [("Authorization", "DPoP LEASE"), ("Authorization", "DPoP LEASE"), ("DPoP", "PROOF")], "missing_auth_header",
    ),
    "two tokens": ([("Authorization", "DPoP LEASE, DPoP other"), ("DPoP", "PROOF")], "invalid_lease"),
}  # fmt: skip
"""A row of each kind: `tests/frontend/auth/test_authorization.py` has all of them."""


@pytest.mark.parametrize(("fields", "code"), HEADER_ROWS.values(), ids=HEADER_ROWS)
def test_credentials_that_two_readers_could_read_differently_are_refused(
    gate: Gateway, key: Key, lease: str, fields: list[tuple[str, str]], code: str
) -> None:
    text = good(gate, key, lease)
    headers = [(name, value.replace("LEASE", lease).replace("PROOF", text)) for name, value in fields]
    refused(gate.http.post(EXECUTE, headers=headers, json=BODY), code)
    assert call(gate, lease, text).status_code == 200  # nothing of it was used up
