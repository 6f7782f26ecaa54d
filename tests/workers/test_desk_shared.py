"""A real http worker that runs shared calls beside each other: what one call does, and what others notice of it."""

import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from ipc.limits import HTTP_WORKER_THREADS, MAX_AHEAD, MAX_SHARED_MEMORY_MB
from ipc.messages.attesting import NoPermit
from ipc.messages.calling import Drop, Result, Secrets
from ipc.messages.modules import ModuleFile
from ipc.plan import CallLimits, Plan
from ipc.process.exits import Exit
from tests.support.worker_peers import Worker
from tests.support.worker_plans import file_plan, plan_for, post_plan
from tests.support.worker_template import Template, kill, template
from tests.support.worker_upstream import holding, ok, upstream
from workers.sandbox.profiles import MAX_GUEST_MEMORY_MB

NAMES = tuple(f"c{number}" for number in range(MAX_AHEAD))


def shared(plan: Plan, **changes: Any) -> Plan:
    """This plan as one that runs beside others."""
    return msgspec.structs.replace(plan, isolation="shared", **changes)


def spinning(request: dict[str, Any], **limits: Any) -> Plan:
    """A shared plan that computes or takes memory."""
    values: dict[str, Any] = {"fuel": 2**60, "timeout_seconds": 600.0}
    plan = plan_for("spin", request, required_imports=("clock",), profile="http", limits=CallLimits(**values | limits))
    return shared(plan)


def start(worker: Worker, plans: dict[str, Plan]) -> None:
    for name, plan in plans.items():
        worker.start(plan, name)


def ended(worker: Worker, names: Iterable[str]) -> dict[str, Result]:
    """Results of these calls and no others, in any order; both peers must hear them alike."""
    results: dict[str, Result] = {}
    for _ in names:
        result = worker.attested()
        assert worker.receive(Result) == result
        results[result.call_id] = result
    assert set(results) == set(names)
    worker.unsaid += results
    return results


def test_as_many_calls_as_a_worker_may_have_wait_for_their_upstream_at_once(running: Template) -> None:
    worker = running.born("http")
    with holding() as (up, release):
        for _ in range(2):
            release.clear()
            up.requests.clear()
            start(worker, {name: shared(post_plan(up.address, path=f"/{name}")) for name in NAMES})
            worker.wait_for(lambda: len(up.requests) == MAX_AHEAD)
            assert not worker.has_told()
            release.set()
            results = ended(worker, NAMES)
            assert {(one.outcome, one.verification.outcome) for one in results.values()} == {("success", "verified")}


def test_each_call_has_its_own_secrets_answer_and_observations(running: Template) -> None:
    def answer(connection: socket.socket) -> None:
        token = next(request for request in reversed(up.requests) if path_of(request) not in answered)
        answered.add(path_of(token))
        ok(json.dumps({"path": path_of(token)}).encode(), "201 Created")(connection)

    answered: set[str] = set()
    worker = running.born("http")
    with upstream(lambda connection: answer(connection)) as up:
        for name in NAMES:
            worker.give(plan := shared(post_plan(up.address, path=f"/{name}", secrets=("token",))), name)
            worker.allow(plan, name)
        for name in reversed(NAMES):
            worker.channel.send(Secrets(name, {"token": f"token-of-{name}-alone"}))
        results = ended(worker, NAMES)
    sent = {path_of(request): request for request in up.requests}
    for name in NAMES:
        assert f"x-token: token-of-{name}-alone\r\n".encode() in sent[f"/{name}"]
        (seen,) = results[name].observations
        assert seen.target == f"POST http://upstream.test/{name}"
        assert "token-of" not in repr(results[name])


def path_of(request: bytes) -> str:
    return request.split(b" ")[1].decode()


ELSEWHERE = post_plan("127.0.0.1:1")
FAULTS: dict[str, tuple[Plan, str]] = {
    "its time": (spinning({"seconds": 3600}, timeout_seconds=0.2), "timeout"),
    "its fuel": (spinning({"fuel": 10**9}, fuel=10**7), "fuel"),
    "its memory": (spinning({"memory_mb": 500}, memory_mb=64), "memory"),
    "more memory than it reports": (spinning({"memory_mb": -1}), "provider_error"),
    "a module that is not there": (
        shared(ELSEWHERE, provider_module_digest="sha256:0"),
        "module_missing",
    ),
}


@pytest.mark.parametrize(("plan", "outcome"), FAULTS.values(), ids=FAULTS.keys())
def test_a_call_that_uses_up_what_it_has_touches_no_other(running: Template, plan: Plan, outcome: str) -> None:
    worker = running.born("http")
    with holding() as (up, release):
        others = {name: shared(post_plan(up.address, path=f"/{name}")) for name in NAMES[1:]}
        start(worker, others)
        worker.wait_for(lambda: len(up.requests) == len(others))
        for _ in range(3):
            worker.start(plan, "c0")
            assert ended(worker, ["c0"])["c0"].outcome == outcome
        release.set()
        assert {result.outcome for result in ended(worker, others).values()} == {"success"}


def test_a_call_whose_upstream_hangs_ends_at_its_deadline_and_others_well(running: Template) -> None:
    worker = running.born("http")
    with holding() as (silent, _), upstream(ok(b"{}", "201 Created")) as up:
        hanging = shared(post_plan(silent.address), limits=CallLimits(timeout_seconds=1.0))
        worker.start(hanging, "hangs")
        others = {name: shared(post_plan(up.address)) for name in NAMES[1:]}
        start(worker, others)
        results = ended(worker, ["hangs", *others])
    assert {name for name, result in results.items() if result.outcome != "success"} == {"hangs"}


REFUSED: dict[str, tuple[Plan, str]] = {
    "of another action": (shared(ELSEWHERE, action_id="other"), "another action"),
    "that is not shared": (ELSEWHERE, "other calls run"),
    "with a worker of its own": (msgspec.structs.replace(ELSEWHERE, isolation="process"), "other calls run"),
    "with much memory": (spinning({}, memory_mb=MAX_SHARED_MEMORY_MB + 1), "more memory than a shared call has"),
}  # fmt: skip


@pytest.mark.parametrize(("plan", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_call_is_refused_beside_shared_ones(running: Template, plan: Plan, reason: str) -> None:
    worker = running.born("http")
    with holding() as (up, release):
        worker.start(shared(post_plan(up.address)), "c1")
        worker.wait_for(lambda: len(up.requests) == 1)
        result = worker.call(plan, "c2")
        assert (result.outcome, result.io_calls) == ("plan_refused", 0)
        assert result.failure is not None
        assert reason in result.failure.message
        release.set()
        assert worker.ended("c1").outcome == "success"


def test_one_call_more_than_a_worker_may_have_is_refused(running: Template) -> None:
    worker = running.born("http")
    with holding() as (up, release):
        start(worker, {name: shared(post_plan(up.address)) for name in NAMES})
        worker.wait_for(lambda: len(up.requests) == MAX_AHEAD)
        assert worker.call(shared(post_plan(up.address)), "more").outcome == "plan_refused"
        release.set()
        assert {result.outcome for result in ended(worker, NAMES).values()} == {"success"}


def test_shared_calls_together_get_no_more_memory_than_one_call_may_have() -> None:
    assert MAX_AHEAD * MAX_SHARED_MEMORY_MB <= MAX_GUEST_MEMORY_MB


def test_workers_without_a_network_run_no_shared_calls(running: Template, tmp_path: Path) -> None:
    assert running.born("compute").call(shared(plan_for("echo", {}))).outcome == "plan_refused"
    assert running.born("fs").call(shared(file_plan(tmp_path))).outcome == "plan_refused"


def test_a_worker_runs_another_action_or_a_call_alone_after_its_shared_calls(running: Template) -> None:
    worker = running.born("http")
    with upstream(ok(b"{}", "201 Created")) as up:
        plan = post_plan(up.address)
        for one in (shared(plan), shared(plan, action_id="other"), plan, shared(plan)):
            assert worker.call(one).outcome == "success"


def test_a_word_that_is_repeated_while_its_call_runs_runs_it_once(running: Template) -> None:
    worker = running.born("http")
    with holding() as (up, release):
        plans = {name: shared(post_plan(up.address, path=f"/{name}")) for name in NAMES[:3]}
        start(worker, plans)
        worker.wait_for(lambda: len(up.requests) == len(plans))
        worker.tie()
        for name, plan in plans.items():
            worker.allow(plan, name)
        worker.wait_for(worker.has_heard)
        release.set()
        assert {result.outcome for result in ended(worker, plans).values()} == {"success"}
        assert len(up.requests) == len(plans)


def test_results_go_out_while_the_worker_waits_for_its_front(running: Template) -> None:
    """For secrets of a call, and for a plan that was refused to be dropped."""
    worker = running.born("http")
    with holding() as (up, release):
        worker.start(shared(post_plan(up.address, path="/c1")), "c1")
        secret = shared(post_plan(up.address, path="/c2", secrets=("token",)))
        worker.start(secret, "c2")
        worker.wait_for(lambda: len(up.requests) == 1 and worker.has_heard())
        release.set()
        assert worker.ended("c1").outcome == "success"
        worker.channel.send(Secrets("c2", {"token": "s3cret-value"}))
        assert worker.ended("c2").outcome == "success"
        release.clear()
        worker.start(shared(post_plan(up.address, path="/c3")), "c3")
        worker.notary.send(NoPermit("c4"))
        worker.wait_for(lambda: len(up.requests) == 3 and worker.has_heard())
        release.set()
        assert worker.ended("c3").outcome == "success"
        worker.channel.send(Drop("c4"))
        assert worker.call(shared(post_plan(up.address)), "c5").outcome == "success"


def test_a_call_that_its_front_has_given_up_holds_up_no_other(running: Template) -> None:
    """Whether the notary has said the word for it meanwhile, or refuses it."""
    worker = running.born("http")
    with holding() as (up, release):
        worker.start(shared(post_plan(up.address, path="/c1")), "c1")
        secret = shared(post_plan(up.address, path="/c2", secrets=("token",)))
        for name in ("c2", "c3"):
            worker.give(secret, name)
            worker.channel.send(Drop(name, is_given_up=True))
        worker.allow(secret, "c2")
        worker.notary.send(NoPermit("c3"))
        told = worker.ended("c2")
        assert (told.outcome, told.io_calls) == ("plan_refused", 0)
        assert told.failure is not None
        assert "given the call up" in told.failure.message
        worker.start(shared(post_plan(up.address, path="/c4")), "c4")
        worker.wait_for(lambda: len(up.requests) == 2)
        release.set()
        assert {one.outcome for one in ended(worker, ["c1", "c4"]).values()} == {"success"}


def test_the_notary_gets_the_results_of_calls_of_a_gone_front(running: Template) -> None:
    worker = running.born("http")
    with holding() as (up, release):
        start(worker, {name: shared(post_plan(up.address)) for name in NAMES})
        worker.wait_for(lambda: len(up.requests) == MAX_AHEAD)
        worker.hang_up()
        release.set()
        told = {(result := worker.attested()).call_id: result.outcome for _ in NAMES}
    assert told == dict.fromkeys(NAMES, "success")
    assert running.exit_status(worker) == Exit.ORPHANED


def test_calls_end_before_a_worker_leaves_whose_front_broke_the_protocol(running: Template) -> None:
    worker = running.born("http")
    with holding() as (up, release):
        worker.start(shared(post_plan(up.address)), "c1")
        worker.wait_for(lambda: len(up.requests) == 1)
        worker.raw(b"\0\0\0\x03\xc1\xc1\xc1")
        worker.allow(shared(post_plan(up.address)), "c2")
        worker.wait_for(worker.has_heard)
        assert not worker.has_told()
        release.set()
        assert worker.attested().outcome == "success"
    assert running.exit_status(worker) == Exit.PROTOCOL


def test_a_worker_that_has_served_its_share_ends_its_calls_first(tmp_path: Path) -> None:
    with template(tmp_path, recycle_after_calls=2) as running:
        running.load(ModuleFile("builtin:http", None, ("http",)))
        worker = running.born("http")
        with holding() as (up, release):
            names = NAMES[:4]
            start(worker, {name: shared(post_plan(up.address)) for name in names})
            worker.wait_for(lambda: len(up.requests) == len(names))
            release.set()
            told = [worker.attested() for _ in names]
        assert [result.retiring for result in told] == [False, True, True, True]
        assert {result.outcome for result in told} == {"success"}
        worker.hang_up()
        assert running.exit_status(worker) == Exit.RECYCLED


def test_a_worker_that_is_killed_tells_of_none_of_its_calls(running: Template) -> None:
    worker = running.born("http")
    with holding() as (up, _):
        start(worker, {name: shared(post_plan(up.address)) for name in NAMES})
        worker.wait_for(lambda: len(up.requests) == MAX_AHEAD)
        kill(worker.pid)
        assert running.exit_status(worker) == -9
        assert not worker.has_told()
    assert running.born("http").call(shared(spinning({"memory_mb": 1}))).outcome == "success"


def test_every_thread_that_runs_calls_yields_to_processes_that_decide(running: Template) -> None:
    worker = running.born("http")
    tasks = Path(f"/proc/{worker.pid}/task")
    stats = [(folder / "stat").read_text().rpartition(")")[2].split() for folder in tasks.iterdir()]
    niceness = sorted(int(fields[16]) for fields in stats)
    assert niceness[-(MAX_AHEAD + 1) :] == [min(19, os.nice(0) + 15)] * (MAX_AHEAD + 1)
    assert psutil.Process(worker.pid).num_threads() == len(niceness) == HTTP_WORKER_THREADS
