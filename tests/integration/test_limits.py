"""Limits of actions and of egress: a call over one is refused, named in evidence, and harms no other call."""

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.gateway import Bearer, Gateway, gateway
from tests.support.manifests import example, open_policy, patient, write_manifests
from tests.support.ports import closed_port
from tests.support.upstream import Upstream


def fetching(action_id: str, host: str, **changes: Any) -> dict[str, Any]:
    """An http_fetch from another host."""
    return example(
        "http_fetch", action_id=action_id, egress={"allowed_domains": [host.partition(":")[0]]},
        template={"url_template": f"http://{host}/{{+path}}"}, **changes,
    )  # fmt: skip


ACTIONS: dict[str, dict[str, Any]] = {
    "no_io": example("http_fetch", action_id="no_io", resource_limits={"max_io_calls": 0}),
    "unknown_host": fetching("unknown_host", "nowhere.gateway.invalid"),
    "closed_port": fetching("closed_port", "closed.gateway.test"),
    "open_secret": example(
        "http_post", action_id="open_secret", egress={"allowed_domains": ["plain.gateway.invalid"]},
        template={"url_template": "http://plain.gateway.invalid/{+path}"},
    ),
    "any_host": example(
        "http_fetch", action_id="any_host", template={"url_template": "https://{host}/x"},
        io={"request_schema": {"required": ["host"], "properties": {"host": {"type": "string"}}}},
    ),
    "no_such_secret": example(
        "http_post", action_id="no_such_secret",
        secrets=[{"name": "never_given", "inject": {"header": "Authorization", "format": "Bearer {value}"}}],
    ),
    "optional_secret": example(
        "http_post", action_id="optional_secret",
        secrets=[{"name": "never_given", "required": False, "inject": {"header": "Authorization"}}],
    ),
    "small_request": example("text_digest", action_id="small_request", io={"max_request_bytes": 64}),
    "small_answer": example("http_fetch", action_id="small_answer", io={"max_response_bytes": 16}),
    "other_answer": example(
        "text_digest", action_id="other_answer",
        io={"response_schema": {"required": ["never"], "additionalProperties": True}},
    ),
    "small_file": example("file_write", action_id="small_file", fs={"max_file_bytes": 8}),
    "few_files": example("file_write", action_id="few_files", fs={"allowed_paths": ["ok/*"]}),
    "little_fuel": example("text_digest", action_id="little_fuel", resource_limits={"fuel": 1000}),
    "little_memory": example("spin", action_id="little_memory", resource_limits={"memory_mb": 1}),
    "little_time": example("spin", action_id="little_time", resource_limits={"timeout_seconds": 0.1}),
}  # fmt: skip


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with one action for each limit."""
    folder: Path = tmp_path_factory.mktemp("gate")
    top = patient(folder / "actions")
    for name, action in ACTIONS.items():
        if name != "little_time":
            action["resource_limits"]["timeout_seconds"] = 300
    write_manifests(folder / "actions", *ACTIONS.values())
    policy = open_policy(folder / "policy", *ACTIONS)
    with closed_port() as closed:
        config = f'{top}policy_dir = "{policy}"\n[egress.unsafe_resolve]\n'
        config += f'"upstream.gateway.test" = "{up.address}"\n"closed.gateway.test" = "127.0.0.1:{closed}"\n'
        with gateway(folder, config) as running:
            yield running


def failure(gate: Gateway, agent: Bearer, answer: httpx.Response) -> dict[str, Any]:
    """The receipt of a 502; its event says the same."""
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"}), answer.text
    event = gate.events(session_id=agent.session_id, event_type="ActionCall")[0]
    receipt: dict[str, Any] = agent.get(f"/v1/receipts/{event['receipt_id']}").json()
    assert receipt["signature_status"] == "verified"
    assert receipt["verification_outcome"] == {"status": "provider_failed_before_verification"}
    assert event["reason"] == receipt["normalized_result"]["reason"]
    assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
    return receipt


# ------------------------------------------------------------------------------------------------ of one call

FETCH = {"path": "x"}
POST = {"path": "x", "message": "m"}
OVER_A_LIMIT: list[tuple[str, dict[str, Any], str, str, str]] = [
    # action, request, kind, failure class, words of the reason
    ("no_io", FETCH, "provider_failure", "policy_violation", "I/O call limit of 0 reached"),
    ("small_answer", FETCH, "provider_failure", "provider_error", "too-large"),
    ("other_answer", {"text": "x"}, "provider_failure", "provider_error", "response_schema"),
    ("small_file", {"path": "a", "content": "123456789"}, "provider_failure", "provider_error", "too-large"),
    ("little_fuel", {"text": "x"}, "provider_failure", "policy_violation", "fuel limit of 1000 reached"),
    ("little_memory", {"memory_mb": 1}, "provider_failure", "policy_violation", "memory limit of 1 MB reached"),
    ("little_time", {"seconds": 1}, "timeout", "timeout", "time limit of 0.1 s reached"),
    ("unknown_host", FETCH, "provider_failure", "provider_error", "resolved"),
    ("closed_port", FETCH, "provider_failure", "provider_error", "the upstream can't be reached"),
    ("open_secret", POST, "provider_failure", "provider_error", "a secret is never sent without TLS"),
]


@pytest.mark.parametrize(
    ("action", "body", "kind", "failure_class", "words"), OVER_A_LIMIT, ids=[row[0] for row in OVER_A_LIMIT]
)
def test_a_call_over_a_limit_is_502_with_a_receipt_that_names_it(
    gate: Gateway, up: Upstream, action: str, body: dict[str, Any], kind: str, failure_class: str, words: str
) -> None:
    agent = gate.agent(max_calls=2)
    before = len(up.seen)
    receipt = failure(gate, agent, agent.execute(action, body))
    assert words in receipt["normalized_result"]["reason"]
    assert (receipt["normalized_result"]["kind"], receipt["failure_class"]) == (kind, failure_class)
    assert len(up.seen) - before == (1 if action == "small_answer" else 0)
    assert "127.0.0.1" not in str(receipt)
    event = gate.events(session_id=agent.session_id, event_type="ActionCall")[0]
    assert event["budgets_after"] == {"calls_remaining": 1}  # what was dispatched is not given back
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200


def test_nothing_is_left_of_a_file_that_was_too_large(gate: Gateway, agent: Bearer) -> None:
    failure(gate, agent, agent.execute("small_file", {"path": "large", "content": "x" * 9}))
    assert not (gate.state / "files" / "large").exists()
    assert agent.execute("small_file", {"path": "large", "content": "x" * 8}).status_code == 200


def test_a_path_beyond_the_manifests_waits_for_a_person_who_may_allow_this_one(
    gate: Gateway, agent: Bearer, operator: Bearer
) -> None:
    assert agent.execute("few_files", {"path": "ok/a", "content": "x"}).status_code == 200
    answer = agent.execute("few_files", {"path": "elsewhere/a", "content": "x"})
    assert answer.status_code == 202
    detail = operator.get(f"/v1/approvals/{answer.json()['approval_id']}").json()
    assert detail["unresolved_paths"] == ["elsewhere/a"]
    assert not (gate.state / "files" / "elsewhere").exists()
    approved = operator.post(f"/v1/approvals/{answer.json()['approval_id']}/approve")
    assert approved.status_code == 200, approved.text
    assert (gate.state / "files" / "elsewhere" / "a").read_text() == "x"
    assert agent.execute("few_files", {"path": "elsewhere/b", "content": "x"}).status_code == 202


def test_a_request_over_the_actions_own_size_is_413(gate: Gateway) -> None:
    agent = gate.agent(max_calls=1)
    answer = agent.execute("small_request", {"text": "x" * 64})
    assert (answer.status_code, answer.json()) == (413, {"error": "body_too_large"})
    assert gate.events(session_id=agent.session_id)[0]["error_code"] == "body_too_large"
    assert agent.execute("small_request", {"text": "x"}).status_code == 200


def test_a_required_secret_that_nobody_gave_fails_the_call_by_name_before_anything_is_sent(
    gate: Gateway, up: Upstream
) -> None:
    agent = gate.agent(max_calls=1)
    before = len(up.seen)
    answer = agent.execute("no_such_secret", POST)
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    assert "never_given" in gate.events(session_id=agent.session_id, decision="error")[0]["reason"]
    assert agent.execute("optional_secret", POST).status_code == 200
    assert len(up.seen) == before + 1
    assert "authorization" not in up.seen[-1].headers


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "LOCALHOST", "x.localhost", "0", "0x7f000001", "2130706433", "127.1", "[::1]", "::1",
        "169.254.169.254", "evil", "evil.test:80", "user@evil.test", "evil.test/x", "evil.test#", "evil.test?", "a..b",
        "-a.test", "evil.test\\x", "\u24d4vil.test/", "", ".", "*.test", "evil.test\r\nX: y", "\uff11\uff12\uff17.1",
    ],
    ids=ascii,
)  # fmt: skip
def test_a_host_that_is_no_plain_domain_name_is_422(gate: Gateway, host: str) -> None:
    agent = gate.agent(max_calls=1)
    answer = agent.execute("any_host", {"host": host})
    assert (answer.status_code, answer.json()["error"]) == (422, "schema_violation"), answer.text
    assert len(host) < 5 or host not in answer.text


def test_a_host_beyond_the_manifests_waits_for_a_person(gate: Gateway, agent: Bearer, operator: Bearer) -> None:
    answer = agent.execute("any_host", {"host": "other.gateway.invalid"})
    assert answer.status_code == 202, answer.text
    approval_id = answer.json()["approval_id"]
    detail = operator.get(f"/v1/approvals/{approval_id}").json()
    assert detail["unresolved_domains"] == ["other.gateway.invalid"]
    assert detail["approved_targets"] == ["GET https://other.gateway.invalid/x"]
    answer = operator.post(f"/v1/approvals/{approval_id}/approve")
    receipt = failure(gate, agent, answer)
    assert "resolved" in receipt["normalized_result"]["reason"]


def test_what_is_over_a_limit_is_over_it_for_its_own_call_alone(gate: Gateway) -> None:
    """Calls that fail in every way beside calls that must not notice."""
    wrong: list[Any] = []

    def fail(action: str, body: dict[str, Any]) -> None:
        agent = gate.agent()
        wrong.extend(
            answer.text for answer in [agent.execute(action, body) for _ in range(3)] if answer.status_code != 502
        )

    threads = [
        threading.Thread(target=fail, args=row)
        for row in (("little_fuel", {"text": "x"}), ("little_time", {"seconds": 1}), ("no_io", FETCH))
    ]
    for thread in threads:
        thread.start()
    agent = gate.agent()
    for number in range(15):
        text = f"well {number}"
        answer = agent.execute("text_digest", {"text": text})
        assert answer.status_code == 200, answer.text
        assert answer.json()["output"]["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    for thread in threads:
        thread.join(300)
    assert not wrong
