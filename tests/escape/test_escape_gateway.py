"""A whole gateway whose workers try to escape, and lie to front and notary: it notices, and serves everybody else."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.background import HeldCall
from tests.support.escape_frames import LIES
from tests.support.escape_steps import IS_X86
from tests.support.gateway import Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import open_policy, patient, plain_action, write_manifests
from tests.support.upstream import Upstream, upstream

pytestmark = pytest.mark.skipif(not IS_X86, reason="the steps know the numbers of system calls of x86_64 alone")

PROFILES: dict[str, tuple[str, ...]] = {"compute": (), "http": ("http",), "fs": ("fs",)}
ALLOWED = {
    # The notary has heard of a success, or the front was faster to have the worker killed.
    "to the front": ("success", "internal_error"),
    "to the notary": ("internal_error",),
}
STAYING = ("front", "notary", "template", "policy")


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    """The upstream of a call that goes on beside all others."""
    with upstream() as server:
        yield server


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with an action of each profile whose worker tries what the request says."""
    folder: Path = tmp_path_factory.mktemp("gate")
    top = patient(folder / "actions")
    for name, imports in PROFILES.items():
        write_manifests(folder / "actions", plain_action(f"escape_{name}", "builtin:echo", imports))
    top += f'policy_dir = "{open_policy(folder / "policy", *(f"escape_{name}" for name in PROFILES))}"\n'
    program = (sys.executable, "-m", "tests.support.escape_gateway")
    with gateway(folder, config_for(up.address, top), program=program) as running:
        before = {title: running.child(title).pid for title in STAYING}
        beside = HeldCall(up, running.agent())
        yield running
        assert beside.release().status() == 200
        assert {title: running.child(title).pid for title in STAYING} == before
        assert running.operator().get("/v1/admin/status").json()["unresolved_intents"] == 0
        assert running.operator().get("/v1/audit/verify").json()["intact"] is True
        assert "Traceback" not in running.log.read_text()


def attempt(agent: Bearer, profile: str, step: str, **facts: Any) -> Any:
    """Have a worker try a step; the answer of the call."""
    return agent.execute(f"escape_{profile}", {"path": "a", "step": step, "facts": facts})


@pytest.mark.parametrize("profile", PROFILES)
def test_a_worker_that_is_killed_for_what_it_tried_is_in_the_log_and_costs_its_call_alone(
    gate: Gateway, profile: str
) -> None:
    agent, before = gate.agent(), len(gate.lines())
    answer = attempt(agent, profile, "execve")
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    receipt = agent.get(f"/v1/receipts/{answer.headers['x-receipt-id']}").json()
    assert receipt["failure_class"] == "internal_error"
    wait_for(
        lambda: any(
            line.get("reason") == "SIGSYS" and line["message"].startswith(f"worker {profile}")
            for line in gate.lines()[before:]
        ),
        "a line about the worker",
    )
    assert attempt(agent, profile, "environment").json()["output"] == {"got": [{}, False]}


@pytest.mark.parametrize("lie", LIES)
def test_a_worker_that_lies_to_front_or_notary_harms_its_own_call_at_most(gate: Gateway, lie: str) -> None:
    agent, other = gate.agent(), gate.agent()
    (theirs,) = gate.operator().get("/v1/admin/intents").json()["intents"]  # of the call that goes on beside all others
    answer = attempt(agent, "compute", lie, theirs=theirs["intent_id"])
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    receipt = agent.get(f"/v1/receipts/{answer.headers['x-receipt-id']}").json()
    assert receipt["normalized_result"]["kind"] in ALLOWED[lie.partition(":")[0]]
    assert receipt["verification_outcome"]["status"] != "verified"
    assert other.execute("text_digest", {"text": "after it"}).status_code == 200
