"""Real workers: what they hold, and how they serve."""

import json
import os
from pathlib import Path

import psutil
import pytest

from ipc.plan import CallLimits
from tests.support.worker_plans import digest_of, endless_plan, make_plan, plan_for, post_plan, write_plan
from tests.support.worker_template import Template, kill
from tests.support.worker_upstream import ok, upstream


def open_files(pid: int) -> dict[int, str]:
    """The target of each descriptor of a process."""
    return {int(name): os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}


@pytest.mark.parametrize("profile", ["compute", "http", "fs"])
def test_a_worker_says_who_it_is(running: Template, profile: str) -> None:
    worker = running.born(profile)
    assert (worker.ready.worker_id, worker.ready.pid, worker.ready.profile) == (worker.worker_id, worker.pid, profile)
    assert "".join(psutil.Process(worker.pid).cmdline()) == f"gateway: worker {profile} {worker.worker_id}"


def test_a_worker_keeps_no_descriptor_of_a_call(running: Template, tmp_path: Path) -> None:
    worker = running.born("fs")
    before = open_files(worker.pid)
    for _ in range(3):
        assert worker.call(write_plan(tmp_path, "a/b")).outcome == "success"
    assert open_files(worker.pid) == before


def test_a_call_gives_one_result_to_both_peers(running: Template) -> None:
    worker = running.born()
    result = worker.call(plan_for("text_digest", {"text": "hello"}), "call-7")
    assert (result.call_id, result.outcome, result.retiring) == ("call-7", "success", False)
    assert result.output is not None
    assert json.loads(result.output)["bytes"] == 5
    assert worker.call(plan_for("echo", {}), "call-8").outcome == "success"  # and nothing else came before its result


def test_one_worker_serves_calls_of_every_outcome_in_a_row(running: Template) -> None:
    worker = running.born()
    clock = {"required_imports": ("clock",)}
    plans = [
        (plan_for("echo", {}), "success"),
        (plan_for("spin", {"fuel": 10**9}, **clock), "fuel"),
        (plan_for("spin", {"seconds": 5}, **clock, limits=CallLimits(fuel=2**60, timeout_seconds=0.1)), "timeout"),
        (plan_for("spin", {"memory_mb": 500}, **clock), "memory"),
        (plan_for("spin", {"memory_mb": -1}, **clock), "provider_error"),
        (plan_for("echo", []), "bad_output"),
        (make_plan(provider_module_digest=digest_of(b"")), "module_missing"),
        (plan_for("echo", {}, profile="fs"), "plan_refused"),
    ]
    for plan, outcome in plans * 2:
        assert worker.call(plan).outcome == outcome


def test_an_http_action_works_in_its_own_profile_and_its_secret_stays_there(running: Template) -> None:
    with upstream(ok(b"{}", "201 Created")) as up:
        plan = post_plan(up.address, secrets=("token",))
        result = running.born("http").call(plan, secrets={"token": "s3cret-value"})
    assert (result.outcome, result.verification.outcome) == ("success", "verified")
    assert b"x-token: s3cret-value" in up.requests[0]
    assert "s3cret-value" not in repr(result)


def test_a_large_result_reaches_both_peers(running: Template) -> None:
    text = json.dumps({"v": "x" * 3_000_000})
    plan = plan_for("echo", {}, provider_input=text, max_response_bytes=4_000_000, limits=CallLimits(fuel=2**60))
    worker = running.born()
    for _ in range(2):
        result = worker.call(plan)
        assert (result.outcome, result.output) == ("success", text)


def test_a_worker_killed_in_the_middle_of_a_call_is_reported_and_the_next_one_serves(running: Template) -> None:
    worker = running.born()
    worker.start(endless_plan(), "c")
    worker.wait_computing()
    kill(worker.pid)
    assert running.exit_status(worker) == -9
    assert running.born().call(plan_for("echo", {})).outcome == "success"
