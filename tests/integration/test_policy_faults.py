"""A policy engine that fails, and modules that are not trusted: nothing is ever allowed because of it."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.background import Background
from tests.support.gateway import ANSWER_SECONDS, Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import PROVIDERS, example, patient, put_module, trust, write_manifests
from tests.support.upstream import Upstream

_FINE = (
    '"allow": true, "requires_approval": false, "deny_reason": "", "rule": "fine", '
    '"allowed_sinks": input.requested_sinks, "policy_version": "faults-1"'
)
_NO = _FINE.replace('"allow": true', '"allow": false')


def _but(field: str, value: str) -> str:
    """A decision that is fine but for one field."""
    return _FINE.replace(f'"{field}": ', f'"{field}": {value}, "was_{field}": ')


ENGINE_FAILS: dict[str, str] = {
    "allow in words": _but("allow", '"yes"'),
    "hold missing": _FINE.replace('"requires_approval": false, ', ""),
    "sinks of numbers": _but("allowed_sinks", "[1]"),
}
"""The path of a file_write -> the members of an answer that is not a valid decision.

`tests/frontend/policy/test_question.py` has a row of each field."""

DENIES: dict[str, tuple[str, str]] = {
    # what is asked for: (members of the decision, the reason that the agent gets)
    "denied and held": (_NO.replace('"requires_approval": false', '"requires_approval": true'), "denied by rule fine"),
    "a reason that deceives": (_NO.replace('""', "data.deceiving"), "a[2Jbcd"),
    "fewer sinks than needed": (_but("allowed_sinks", "[]"), "policy does not allow every sink of this action"),
}

POLICY = """package gateway

import rego.v1

slow if {
	input.fs_path == "loops"
	count([1 | some x in numbers.range(1, 9000); some y in numbers.range(1, 9000); x == y + 0.5]) == 1
}

special := {%s}

decision := {%s} if slow
else := {%s} if not input.fs_path in special

%s
"""


def write_policy(folder: Path) -> Path:
    """A policy that allows everything, but for the paths above, `loops`, `contradicts` and `is too large`."""
    rows = ENGINE_FAILS | {name: members for name, (members, _) in DENIES.items()}
    special = [*rows, "contradicts", "is too large"]
    rules = [f'decision := {{{members}}} if input.fs_path == "{name}"' for name, members in rows.items()]
    rules += [
        f'decision := {{{_but("rule", chr(34) + word + chr(34))}}} if input.fs_path == "contradicts"'
        for word in ("one", "two")
    ]
    huge = _but("deny_reason", 'concat("", ["0123456789" | some _ in numbers.range(1, 9000)])')
    rules.append(f'decision := {{{huge}}} if input.fs_path == "is too large"')
    text = POLICY % (", ".join(f'"{name}"' for name in special), _FINE, _FINE, "\n\n".join(rules))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gateway.rego").write_text(text)
    data = {"policy_version": "faults-1", "deceiving": "a\x1b[2Jb\u202ec\u2028d\n"}
    (folder / "data.json").write_text(json.dumps(data))
    return folder


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose policy does what a path asks it to, and with two actions whose modules are in doubt."""
    folder: Path = tmp_path_factory.mktemp("gate")
    top, actions, policy = patient(folder / "actions"), folder / "actions", write_policy(folder / "policy")
    data = (PROVIDERS / "text_digest.wasm").read_bytes()
    known = put_module(actions, data + b"\0\x02\x01a")
    unknown = put_module(actions, data + b"\0\x02\x01b")
    changed = put_module(actions, data, as_digest="c" * 64)
    for name, digest in (("known", known), ("unknown", unknown), ("changed", changed)):
        write_manifests(actions, example("text_digest", action_id=name, provider_module_digest=digest))
    trust(actions, known, changed)
    more = f'{top}policy_dir = "{policy}"'
    with gateway(folder, config_for(up.address, more)) as running:
        yield running


def write(agent: Bearer, path: str) -> httpx.Response:
    return agent.execute("file_write", {"path": path, "content": "x"})


def event_of(gate: Gateway, agent: Bearer) -> dict[str, Any]:
    return gate.events(session_id=agent.session_id, event_type="ActionCall")[0]


def refused(gate: Gateway, agent: Bearer, answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The event of a call that was refused before anything ran; its budget of one call is whole."""
    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    assert status < 500 or answer.json() == {"error": code}
    event = event_of(gate, agent)
    assert event["error_code"] == code
    assert event["decision"] == ("error" if status >= 500 else "deny")
    assert "receipt_id" not in event
    # The next policy process may start slowly; a call before that costs nothing.
    wait_for(lambda: agent.execute("text_digest", {"text": "the one call"}).status_code == 200, "the one call")
    return event


# ------------------------------------------------------------------------------------------------ decisions


@pytest.mark.parametrize("path", [*ENGINE_FAILS, "contradicts", "is too large"])
def test_what_is_no_decision_is_an_engine_that_failed(gate: Gateway, path: str) -> None:
    agent = gate.agent(max_calls=1)
    event = refused(gate, agent, write(agent, path), 503, "policy_engine_unavailable")
    assert event["reason"]
    assert not (gate.state / "files" / path).exists()


@pytest.mark.parametrize("path", DENIES)
def test_a_denial_is_a_denial_whatever_else_it_says(gate: Gateway, path: str) -> None:
    agent = gate.agent(max_calls=1)
    answer = write(agent, path)
    event = refused(gate, agent, answer, 403, "policy_denied")
    assert answer.json()["deny_reason"] == event["deny_reason"] == DENIES[path][1]
    assert event["policy_rule"] == "fine"
    assert not (gate.state / "files" / path).exists()


def test_none_of_this_cost_a_policy_process(gate: Gateway) -> None:
    assert "policy 1 ended" not in gate.log.read_text()
    wait_for(lambda: gate.http.get("/readyz").json()["opa"], "readiness")


# ------------------------------------------------------------------------------------------------ the engine itself


def test_an_evaluation_without_end_is_cut_after_a_second_and_the_next_call_is_served(gate: Gateway) -> None:
    agent = gate.agent(max_calls=1)
    before = gate.child("policy").pid
    began = time.monotonic()
    answer = write(agent, "loops")
    assert time.monotonic() - began > 0.9
    assert answer.headers["retry-after"] == "1"
    refused(gate, agent, answer, 503, "policy_engine_timeout")
    assert not (gate.state / "files" / "loops").exists()
    wait_for(lambda: [one.pid for one in gate.children("policy")] not in ([], [before]), "another policy process")


def test_calls_beside_an_evaluation_without_end_are_decided_or_refused(gate: Gateway) -> None:
    agent = gate.agent()
    loop = Background(lambda: write(agent, "loops"))
    with httpx.Client(base_url=gate.ready["base_url"], timeout=ANSWER_SECONDS, verify=False) as http:
        other = gate.agent(http=http)
        answers = [other.execute("text_digest", {"text": str(number)}) for number in range(5)]
    for answer in answers:
        assert answer.status_code == 200 or answer.json()["error"].startswith("policy_engine_")
    assert loop.status() == 503
    wait_for(lambda: agent.execute("text_digest", {"text": "after it"}).status_code == 200, "a call after it")


def test_a_policy_process_that_hangs_is_replaced(gate: Gateway) -> None:
    agent = gate.agent(max_calls=1)
    frozen = gate.child("policy")
    frozen.send_signal(signal.SIGSTOP)
    answer = write(agent, "never asked before")
    refused(gate, agent, answer, 503, "policy_engine_timeout")
    wait_for(lambda: [one.pid for one in gate.children("policy")] not in ([], [frozen.pid]), "another policy process")


def test_what_was_decided_before_counts_only_while_the_process_lives(gate: Gateway) -> None:
    agent = gate.agent()

    def call() -> httpx.Response:
        return agent.execute("text_digest", {"text": "x"})

    wait_for(lambda: call().status_code == 200, "the decision to be remembered")
    status = gate.operator().get("/v1/admin/status").json()["policy_memo"]
    assert (status["in_use"], status["reason"]) == (True, None)
    assert status["entries"] >= 1
    sleeper = gate.child("policy")
    sleeper.send_signal(signal.SIGSTOP)
    answer = wait_for(lambda: (got := call()).status_code != 200 and got, "a refusal")
    assert answer.status_code == 503
    assert answer.json()["error"] == "policy_engine_timeout"
    wait_for(lambda: [one.pid for one in gate.children("policy")] not in ([], [sleeper.pid]), "another policy process")
    wait_for(lambda: call().status_code == 200, "a call after it")
    assert event_of(gate, agent)["policy_rule"] == "fine"


def test_a_policy_process_that_hangs_while_nobody_calls_is_seen_and_replaced(gate: Gateway) -> None:
    wait_for(lambda: gate.http.get("/readyz").json()["opa"], "readiness")
    sleeper = gate.child("policy")
    sleeper.send_signal(signal.SIGSTOP)
    wait_for(lambda: not gate.http.get("/readyz").json()["opa"], "readiness to show it")
    wait_for(lambda: [one.pid for one in gate.children("policy")] not in ([], [sleeper.pid]), "another policy process")
    wait_for(lambda: gate.http.get("/readyz").json()["opa"], "readiness")


def test_a_policy_process_killed_over_a_question_answers_nothing(gate: Gateway) -> None:
    """The question is open for a second at most, and a machine may stand still for longer: until the kill comes in
    time, the answer is that the evaluation had no end."""
    codes: list[str] = []

    def is_killed_over_it() -> bool:
        agent = gate.agent(max_calls=1)
        (victim,) = wait_for(lambda: gate.children("policy"), "a policy process")
        loop = Background(lambda: write(agent, "loops"))
        wait_for(lambda: is_computing(victim.pid) or not loop.is_under_way(), "the evaluation")
        with suppress(psutil.NoSuchProcess):
            victim.kill()
        answer = loop.answer()
        assert answer is not None
        codes.append(answer.json()["error"])
        refused(gate, agent, answer, 503, codes[-1])
        return codes[-1] == "policy_engine_unavailable"

    wait_for(is_killed_over_it, "a kill over a question")
    assert set(codes) <= {"policy_engine_unavailable", "policy_engine_timeout"}


def is_computing(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:
        return False


def test_while_policy_processes_die_nothing_is_allowed_without_a_decision(gate: Gateway) -> None:
    agent = gate.agent()
    killed: set[int] = set()
    while len(killed) < 6:  # after twenty in a minute the supervisor would take its time
        for victim in gate.children("policy"):
            with suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
            killed.add(victim.pid)
        answer = agent.execute("text_digest", {"text": "x"})
        assert answer.status_code == 200 or answer.json()["error"].startswith("policy_engine_")
    for event in gate.events(session_id=agent.session_id, event_type="ActionCall", decision="allow", limit=1000):
        assert event["policy_rule"] == "fine"
    wait_for(lambda: agent.execute("text_digest", {"text": "x"}).status_code == 200, "recovery")


# ------------------------------------------------------------------------------------------------ trust


def test_trust_comes_before_everything_that_the_request_says(gate: Gateway, agent: Bearer) -> None:
    for action in ("unknown", "changed"):
        headers = agent.headers("POST", f"/v1/actions/{action}/execute")
        answer = gate.http.post(f"/v1/actions/{action}/execute", headers=headers, content=b"{nope")
        assert answer.status_code == 403


def test_a_module_of_ones_own_that_was_entered_runs(gate: Gateway, agent: Bearer) -> None:
    answer = agent.execute("known", {"text": "x"})
    assert answer.status_code == 200, answer.text
    shown = gate.http.get("/v1/actions/known").json()["provider_module_digest"]
    assert agent.get(f"/v1/receipts/{answer.json()['receipt_id']}").json()["provider_module_digest"] == shown


def test_a_module_that_is_changed_while_the_gateway_runs_changes_nothing_until_it_is_read_again(
    gate: Gateway, agent: Bearer
) -> None:
    """The running code was compiled from the hashed bytes; a file that is replaced later is never read."""
    shown = gate.http.get("/v1/actions/known").json()["provider_module_digest"]
    path = gate.state.parent / "actions" / "modules" / f"{shown.removeprefix('sha256:')}.wasm"
    data = path.read_bytes()
    try:
        path.write_bytes((PROVIDERS / "echo.wasm").read_bytes())
        assert agent.execute("known", {"text": "x"}).status_code == 200
        gate.process.send_signal(signal.SIGHUP)
        wait_for(lambda: agent.execute("known", {"text": "x"}).status_code == 403, "the refusal")
        assert agent.execute("known", {"text": "x"}).json() == {"error": "action_digest_mismatch"}
    finally:
        path.write_bytes(data)
        gate.process.send_signal(signal.SIGHUP)
        wait_for(lambda: agent.execute("known", {"text": "x"}).status_code == 200, "the repair")
