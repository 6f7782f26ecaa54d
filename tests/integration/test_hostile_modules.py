"""Modules that mean harm, called over the public interface: each is answered or never runs, and others notice nothing.

The outcome of a call shows when it ended, too: a worker that does not end a call by its deadline is killed by its front
two seconds later, and the receipt would say `internal_error` instead of what happened.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.background import Background
from tests.support.gateway import Gateway, config_for, gateway, wait_for
from tests.support.hostile_modules import ANSWERED, REFUSED, Answered, Refused, wasm
from tests.support.manifests import open_policy, patient, plain_action, put_module, trust, write_manifests
from tests.support.upstream import Upstream

RECEIPTS = {
    # outcome of the worker: kind of the normalized result and failure class
    "fuel": ("provider_failure", "policy_violation"),
    "timeout": ("timeout", "timeout"),
    "trap": ("provider_failure", "provider_error"),
    "memory": ("provider_failure", "policy_violation"),
    "bad_output": ("provider_failure", "provider_error"),
    "response_schema": ("provider_failure", "provider_error"),
    "provider_error": ("provider_failure", "provider_error"),
    "io_calls": ("provider_failure", "policy_violation"),
    "host_io": ("provider_failure", "provider_error"),
}
NAMES = {one.name for one in ANSWERED} | {one.name for one in REFUSED}
STAYING = ("front", "notary", "template", "policy")


@pytest.fixture(scope="module")
def actions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of manifests."""
    return Path(tmp_path_factory.mktemp("hostile")) / "actions"


@pytest.fixture(scope="module")
def gate(up: Upstream, actions: Path) -> Iterator[Gateway]:
    """A gateway whose operator trusts all of them, with an action for each that loads."""
    folder, top = actions.parent, patient(actions)
    digests = {name: put_module(actions, wasm(name)) for name in NAMES}
    trust(actions, *digests.values())
    for one in ANSWERED:
        io = {"response_schema": dict(one.response)} if one.response else {}
        more = {"resource_limits": dict(one.limits), "io": io | {"max_response_bytes": one.max_bytes}}
        write_manifests(actions, plain_action(one.action_id, digests[one.name], one.imports, **more))
    top += f'policy_dir = "{open_policy(folder / "policy", *(one.action_id for one in ANSWERED))}"\n'
    with gateway(folder, config_for(up.address, top)) as running:
        before = {title: running.child(title).pid for title in STAYING}
        yield running
        assert {title: running.child(title).pid for title in STAYING} == before
        status = running.operator().get("/v1/admin/status").json()
        assert status["unresolved_intents"] == 0
        assert running.operator().get("/v1/audit/verify").json()["intact"] is True
        wait_for(running.is_ready, "readiness")
        assert "Traceback" not in running.log.read_text()


@pytest.mark.parametrize("module", ANSWERED, ids=lambda one: one.action_id.removeprefix("hostile_"))
def test_a_hostile_module_is_answered_with_its_class_and_other_calls_go_on(gate: Gateway, module: Answered) -> None:
    agent, other = gate.agent(), gate.agent()
    call = Background(lambda: agent.execute(module.action_id, {"path": "a"}))
    assert other.execute("text_digest", {"text": "beside it"}).status_code == 200
    answer = call.answer()
    assert answer is not None
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    receipt = agent.get(f"/v1/receipts/{answer.headers['x-receipt-id']}").json()
    assert receipt["provider_receipt"]["outcome"] == module.outcome
    assert (receipt["normalized_result"]["kind"], receipt["failure_class"]) == RECEIPTS[module.outcome]
    assert module.said in json.dumps(receipt)
    assert len(json.dumps(receipt)) < 10_000
    assert other.execute("text_digest", {"text": "after it"}).status_code == 200


def whole_lines(gate: Gateway, before: int) -> list[dict[str, Any]]:
    """Lines of the log from this place on; one that is on its way into the file is left out."""
    return [json.loads(line) for line in gate.log.read_text()[before:].rpartition("\n")[0].splitlines()]


def test_a_module_can_neither_flood_the_log_nor_forge_a_line_of_it(gate: Gateway) -> None:
    agent, before = gate.agent(), len(gate.log.read_text())
    traces = [agent.execute(f"hostile_log_{name}").headers["x-trace-id"] for name in ("storm_timeout", "forged_trap")]

    def said() -> list[dict[str, Any]]:
        lines = whole_lines(gate, before)
        assert not any(line.get("event") == "forged line" for line in lines)
        return [line for line in lines if line["message"] == "provider says" and line["trace_id"] in traces]

    wait_for(lambda: len(said()) >= 21, "what the modules have to say")
    assert [sum(line["trace_id"] == trace for line in said()) for trace in traces] == [20, 1]


@pytest.fixture(scope="module")
def refusals(gate: Gateway, actions: Path) -> list[str]:
    """The log lines of an attempt to put all other modules in force with a reload, which changes nothing."""
    before = len(gate.log.read_text())
    for one in REFUSED:
        digest = f"sha256:{hashlib.sha256(wasm(one.name)).hexdigest()}"
        write_manifests(actions, plain_action(one.action_id, digest, one.imports))
    answer = gate.operator().post("/v1/admin/reload")
    assert (answer.status_code, answer.json()) == (500, {"error": "reload_failed"})
    for one in REFUSED:
        (actions / f"{one.action_id}.yaml").unlink()
    assert gate.operator().post("/v1/admin/reload").status_code == 200
    return next(line["problems"] for line in whole_lines(gate, before) if "problems" in line)


@pytest.mark.parametrize("module", REFUSED, ids=lambda one: one.name)
def test_a_module_that_may_not_run_is_refused_when_it_is_loaded(refusals: list[str], module: Refused) -> None:
    (problem,) = [one for one in refusals if f"/{module.action_id}.yaml:" in one]
    assert module.said in problem
