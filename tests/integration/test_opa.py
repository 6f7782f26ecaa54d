"""A gateway whose policy engine is a real OPA: what it decides, what is pushed into its data, and what it survives."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench.servers import RULES
from tests.support.faulty_opa import LARGE, Fault, FaultyOpa, saying, silence
from tests.support.gateway import START_SECONDS, Bearer, Gateway, gateway, wait_for
from tests.support.opa import Opa, bundle, opa
from tests.support.processes import GATEWAY

DECISION = b"/v1/data/gateway/decision"
PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}
UNAVAILABLE, TIMEOUT = "policy_engine_unavailable", "policy_engine_timeout"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opa]:
    with opa(tmp_path_factory.mktemp("opa")) as running:
        yield running


@pytest.fixture(scope="module")
def between(engine: Opa, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyOpa]:
    server = FaultyOpa(engine, tmp_path_factory.mktemp("between"))
    server.listen()
    yield server
    server.close()


@pytest.fixture(scope="module")
def gate(between: FaultyOpa, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Two fronts that share one OPA."""
    with gateway(tmp_path_factory.mktemp("gate"), f'opa_url = "{between.url}"\nfront_processes = 2\n') as running:
        yield running


@pytest.fixture
def up(gate: Gateway) -> Gateway:
    """The gateway, once every front has its engine."""
    wait_for(lambda: dependencies(gate)["opa"] and ready(gate), "an engine that answers")
    return gate


def ready(gate: Gateway) -> bool:
    return bool(gate.http.get("/readyz").json()["opa"])


def dependencies(gate: Gateway) -> dict[str, bool]:
    return dict(gate.operator().get("/v1/admin/status").json()["dependencies"])


def call(agent: Bearer) -> httpx.Response:
    return agent.execute("text_digest", {"text": "x"})


def grant(gate: Gateway, principal: str) -> httpx.Response:
    return gate.operator().post("/v1/admin/policy/grant", {"principal": principal, "actions": ["text_digest"]})


def data_file(gate: Gateway) -> dict[str, Any]:
    return dict(json.loads((gate.state / "policy" / "data.json").read_text()))


# ------------------------------------------------------------------------------------------------ while all is well


def test_opa_decides_and_no_policy_process_is_there(up: Gateway) -> None:
    agent = up.agent()
    assert call(agent).status_code == 200
    assert up.events(session_id=agent.session_id, event_type="ActionCall")[0]["policy_rule"] == "allow"
    assert agent.execute("payment_transfer", {"to": "acct-7", "amount_cents": 1, "currency": "EUR"}).status_code == 202
    status = up.operator().get("/v1/admin/status").json()
    assert status["backends"]["policy"] == "opa"
    assert status["policy_memo"]["reason"] == 'opa_memo is "off"'
    assert up.children("policy") == []
    listed = subprocess.run(
        [GATEWAY, "ps", "--state-dir", str(up.state)], capture_output=True, text=True, check=True, timeout=START_SECONDS
    ).stdout
    assert "front 2" in listed
    assert "policy" not in listed


def test_a_change_is_in_opas_data_when_the_operator_is_answered(up: Gateway, engine: Opa) -> None:
    engine.http.put("/v1/data/someone_elses", json={"kept": True})
    try:
        assert grant(up, "pushed").status_code == 200
        assert engine.data("acl/pushed/actions") == ["text_digest"]
        pair = {"action_id": "payment_transfer", "agent_id": "pushed"}
        assert up.operator().post("/v1/admin/policy/allowlist", pair).status_code == 200
        assert engine.data("allowlist/payment_transfer/pushed") is True
        body = {"principal": "pushed", "actions": ["text_digest"]}
        assert up.operator().post("/v1/admin/policy/revoke", body).status_code == 200
        assert engine.data("acl/pushed") is None
        assert engine.data("policy_version") == data_file(up)["policy_version"]
        assert engine.data("someone_elses") == {"kept": True}
    finally:
        engine.http.delete("/v1/data/someone_elses")


def test_a_revocation_counts_at_every_front_from_its_answer_on(up: Gateway) -> None:
    agents = [up.agent(http=httpx.Client(base_url=up.ready["base_url"], timeout=START_SECONDS)) for _ in range(4)]
    body = {"principal": "dev:anonymous", "actions": ["text_digest"]}
    assert [call(agent).status_code for agent in agents] == [200] * 4
    assert up.operator().post("/v1/admin/policy/revoke", body).status_code == 200
    try:
        assert [call(agent).json()["error"] for agent in agents] == ["policy_denied"] * 4
    finally:
        assert grant(up, "dev:anonymous").status_code == 200
        for agent in agents:
            agent.http.close()


def test_a_reload_pushes_what_was_edited(up: Gateway, engine: Opa) -> None:
    file = up.state / "policy" / "data.json"
    before = file.read_text()
    document = json.loads(before) | {"denied_actions": {"text_digest": "not on Mondays"}, "more/of ~it": [1]}
    file.write_text(json.dumps(document))
    try:
        assert up.operator().post("/v1/admin/reload").status_code == 200
        assert engine.data("denied_actions") == {"text_digest": "not on Mondays"}
        assert engine.http.get("/v1/data").json()["result"]["more/of ~it"] == [1]
        answer = call(up.agent())
        assert (answer.status_code, answer.json().get("deny_reason")) == (403, "not on Mondays"), answer.text
    finally:
        file.write_text(before)
        assert up.operator().post("/v1/admin/reload").status_code == 200
    assert "more/of ~it" not in engine.http.get("/v1/data").json()["result"]
    assert call(up.agent()).status_code == 200


# ------------------------------------------------------------------------------------------------ faults

FAULTS: dict[str, tuple[Fault, bytes, str, str]] = {
    # fault: (what it does, to which requests, the code of a call, that of an operator's change)
    "hangs": (silence, b"", TIMEOUT, TIMEOUT),
    "refuses the token": (saying(b'{"code": "unauthorized"}', "401 No"), b"", UNAVAILABLE, UNAVAILABLE),
    "is slow to decide": (silence, DECISION, TIMEOUT, ""),
    "has half a decision": (saying(b'{"result": {"allow": true}}'), DECISION, UNAVAILABLE, ""),
    "has too much to say": (saying(b'{"result": "' + b"x" * LARGE + b'"}'), DECISION, UNAVAILABLE, ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_opa_that_fails_allows_nothing(up: Gateway, between: FaultyOpa, name: str) -> None:
    fault, target, code, change_code = FAULTS[name]
    agent, before = up.agent(), data_file(up)
    with between.failing(fault, target):
        answer = call(agent)
        assert (answer.status_code, answer.json()) == (503, {"error": code})
        wait_for(lambda: not ready(up), "readiness that says so")
        status = up.operator().get("/v1/admin/status").json()
        assert (status["status"], status["dependencies"]["opa"]) == ("degraded", False)
        change = grant(up, f"during-{len(before['acl'])}")
        assert change.json().get("error", "") == change_code
        if change_code:
            assert change.status_code == 503
            assert data_file(up) == before
    event = up.events(session_id=agent.session_id, event_type="ActionCall")[0]
    assert (event["decision"], event["error_code"]) == ("error", code)
    assert event["reason"]
    assert any(answer.headers["x-trace-id"] in line and code in line for line in up.log.read_text().splitlines())
    wait_for(lambda: ready(up) and dependencies(up)["opa"], "recovery")
    assert call(agent).status_code == 200


def test_every_failure_is_counted(up: Gateway) -> None:
    text = up.operator().get("/metrics").text
    for code in (UNAVAILABLE, TIMEOUT):
        assert any("errors_total" in line and '"decide"' in line and code in line for line in text.splitlines())


def test_one_question_that_takes_too_long_is_that_questions_own_matter(up: Gateway, between: FaultyOpa) -> None:
    agent = up.agent()
    with between.failing(silence, b'"fs_path":"loops"'):
        answer = agent.execute("file_write", {"path": "loops", "content": "x"})
        assert (answer.status_code, answer.json()) == (503, {"error": TIMEOUT})
        wait_for(lambda: call(agent).status_code == 200, "a call beside it")


def test_a_change_that_opa_does_not_take_is_kept_and_nothing_is_decided_until_it_does(
    up: Gateway, between: FaultyOpa, engine: Opa
) -> None:
    agent = up.agent()
    with between.failing(saying(b'{"code": "unauthorized"}', "403 No"), b"PATCH"):
        change = grant(up, "late")
        assert (change.status_code, change.json()) == (503, {"error": UNAVAILABLE})
        assert data_file(up)["acl"]["late"]["actions"] == ["text_digest"]
        assert engine.data("acl/late") is None
        assert call(agent).json() == {"error": UNAVAILABLE}
    wait_for(lambda: call(agent).status_code == 200, "the change to be in force")
    assert engine.data("acl/late/actions") == ["text_digest"]
    told = [
        event["decision"] for event in up.events(event_type="PolicyGranted") if event["change"]["principal"] == "late"
    ]
    assert told == ["error", "allow"]


# ------------------------------------------------------------------------------------------------ OPA itself


def test_an_opa_that_lost_its_data_is_given_it_before_it_is_believed(
    up: Gateway, engine: Opa, between: FaultyOpa
) -> None:
    agent = up.agent()
    assert grant(up, "remembered").status_code == 200
    # Rules that allow principals without an entry: without the data everything would be allowed.
    open_to_all = engine.data("acl")
    assert "remembered" in open_to_all
    with engine.gone():
        assert call(agent).json()["error"] == UNAVAILABLE
    wait_for(lambda: call(agent).status_code == 200, "decisions")
    assert engine.data("acl") == open_to_all


def test_without_an_opa_a_hold_can_not_be_approved_and_stays(up: Gateway, engine: Opa) -> None:
    agent = up.agent()
    approval_id = agent.execute("payment_transfer", PAYMENT).json()["approval_id"]
    with engine.gone():
        answer = up.operator().post(f"/v1/approvals/{approval_id}/approve")
        assert (answer.status_code, answer.json()) == (503, {"error": UNAVAILABLE})
        assert agent.get(f"/v1/approvals/{approval_id}/poll").json()["state"] == "pending"
    wait_for(
        lambda: up.operator().post(f"/v1/approvals/{approval_id}/approve").json().get("error") != UNAVAILABLE,
        "the engine",
    )
    assert agent.get(f"/v1/approvals/{approval_id}/poll").json()["state"] != "pending"


def test_documents_that_someone_took_away_are_put_back(up: Gateway, engine: Opa) -> None:
    engine.http.put("/v1/data/acl", json={"dev:anonymous": {"actions": [], "sinks": []}})
    engine.http.delete("/v1/data/gateway_pushed")  # last: a front that looks in between pushes nothing
    wait_for(lambda: engine.data("gateway_pushed") is not None, "the push")
    wait_for(lambda: call(up.agent()).status_code == 200, "decisions over the lists of the gateway")


def test_an_opa_without_rules_is_not_ready(up: Gateway, engine: Opa) -> None:
    rules = next(one["id"] for one in engine.http.get("/v1/policies").json()["result"])
    text = engine.http.get(f"/v1/policies/{rules}").json()["result"]["raw"]
    engine.http.delete(f"/v1/policies/{rules}")
    try:
        agent = up.agent()
        assert call(agent).json() == {"error": UNAVAILABLE}
        wait_for(lambda: not ready(up), "readiness that says so")
    finally:
        engine.put_rules(text, rules)
    wait_for(lambda: call(agent).status_code == 200, "decisions")


def test_a_front_that_follows_another_serves_without_an_opa(up: Gateway, engine: Opa) -> None:
    with engine.gone():
        victims = {one.pid for one in up.children("front")}
        for one in up.children("front"):
            one.kill()
        wait_for(lambda: len({one.pid for one in up.children("front")} - victims) == 2, "other fronts")
        wait_for(up.answers, "a front that answers")
        assert ready(up) is False
    wait_for(lambda: up.answers() and ready(up), "the engine")
    assert call(up.agent()).status_code == 200


# ------------------------------------------------------------------------------------------------ the start, the memo


def start(folder: Path, url: str) -> "subprocess.Popen[str]":
    folder.mkdir()
    (folder / "gateway.toml").write_text(f'opa_url = "{url}"\n')
    command = [GATEWAY, "dev", "--listen", "127.0.0.1:0", "--state-dir", str(folder / "state")]
    return subprocess.Popen(
        [*command, "--config", str(folder / "gateway.toml")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_start_without_rules_is_one_sentence_and_69(tmp_path: Path) -> None:
    with opa(tmp_path / "opa", files=()) as without_rules:
        process = start(tmp_path / "empty", without_rules.url)
        log = process.communicate(timeout=START_SECONDS)[1]
    said = [line for line in log.splitlines() if "the front can't start" in line]
    assert process.returncode == 69, log
    assert len(said) == 1
    assert "load the rules there first" in said[0]


def test_decisions_are_remembered_for_as_long_as_the_bundles_have_one_revision(tmp_path: Path) -> None:
    rules = RULES.read_text()
    folder = bundle(tmp_path / "bundle", rules, "r1")
    with opa(tmp_path / "opa", ["--bundle", str(folder)], ["--watch"]) as engine:
        config = f'opa_url = "{engine.url}"\nopa_memo = "revision"\n'
        with gateway(tmp_path, config) as gate:
            agent = gate.agent()

            def memo() -> dict[str, Any]:
                return dict(gate.operator().get("/v1/admin/status").json()["policy_memo"])

            wait_for(lambda: call(agent).status_code == 200 and memo()["entries"] == 1, "a remembered decision")

            def is_remembered() -> bool:
                before = remembered(gate)
                return call(agent).status_code == 200 and remembered(gate) == before + 1

            wait_for(is_remembered, "a decision from memory")
            with engine.frozen():
                refusal = wait_for(lambda: (got := call(agent)).status_code != 200 and got, "a refusal")
                assert (refusal.status_code, refusal.json()) == (503, {"error": TIMEOUT})
            wait_for(lambda: call(agent).status_code == 200, "OPA's answers")
            denying = rules.replace(
                "applies_denied_action if", "applies_denied_action if true\n\napplies_denied_action if"
            )
            bundle(folder, denying, "r2")
            wait_for(lambda: call(agent).status_code == 403, "the rules of the new revision")
            bundle(folder, rules, None)
            wait_for(lambda: call(agent).status_code == 200, "the rules without a revision")
            wait_for(lambda: memo()["reason"] == "OPA tells no revision of its bundles", "no memo")
            assert memo()["entries"] == 0


def remembered(gate: Gateway) -> float:
    text = gate.operator().get("/metrics").text
    lines = [line for line in text.splitlines() if line.startswith("gate_policy_remembered_total")]
    return float(lines[0].split()[-1]) if lines else 0.0
