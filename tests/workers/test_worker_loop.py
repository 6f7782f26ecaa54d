"""A real worker's desk: what it runs, and on whose word."""

from pathlib import Path

import pytest

from ipc.limits import MAX_AHEAD
from ipc.messages.attesting import Permit
from ipc.messages.calling import Call, Result, Secrets
from ipc.plan import hash_of, seal
from ipc.process.exits import Exit
from tests.support.worker_plans import plan_for, post_plan, word_for, write_plan
from tests.support.worker_template import Template, busy
from tests.support.worker_upstream import ok, upstream

ECHO = plan_for("echo", {})


def test_nothing_runs_without_a_word(running: Template, tmp_path: Path) -> None:
    worker = running.born("fs")
    worker.give(write_plan(tmp_path, "first"), "c1")
    assert worker.call(write_plan(tmp_path, "second"), "c2").outcome == "success"
    assert [path.name for path in tmp_path.iterdir()] == ["second"]
    worker.allow(write_plan(tmp_path, "first"), "c1")
    assert worker.ended("c1").outcome == "success"
    assert (tmp_path / "first").exists()


def test_a_word_for_another_plan_refuses_this_one_and_executes_nothing(running: Template, tmp_path: Path) -> None:
    worker = running.born("fs")
    plan, other = write_plan(tmp_path, "a"), write_plan(tmp_path, "b")
    result = worker.call(plan, plan_hash=word_for(other).plan_hash)
    assert (result.outcome, result.io_calls, result.observations) == ("plan_refused", 0, ())
    assert list(tmp_path.iterdir()) == []
    assert worker.call(plan).outcome == "success"


def test_other_bytes_of_the_same_plan_are_refused(running: Template, tmp_path: Path) -> None:
    worker = running.born("fs")
    plan = write_plan(tmp_path, "a")
    worker.channel.send(Call("c1", seal(plan).encoded + b" ", 30.0))
    worker.allow(plan, "c1")
    assert worker.ended("c1").outcome == "plan_refused"
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_are_no_plan_end_the_worker_and_nothing_runs(running: Template, tmp_path: Path) -> None:
    worker = running.born("fs")
    encoded = seal(write_plan(tmp_path, "a")).encoded[:-1]
    worker.channel.send(Call("c1", encoded, 30.0))
    worker.notary.send(Permit("c1", hash_of(encoded), is_approved=False))
    assert running.exit_status(worker) == Exit.PROTOCOL
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_comes_after_its_word_is_waited_for(running: Template, tmp_path: Path) -> None:
    worker = running.born("fs")
    plan = write_plan(tmp_path, "a")
    worker.allow(plan, "c1")
    worker.wait_for(worker.has_heard)
    worker.give(plan, "c1")
    assert worker.ended("c1").outcome == "success"


def test_secrets_that_follow_the_plan_are_waited_for(running: Template) -> None:
    worker = running.born("http")
    with upstream(ok(b"{}", "201 Created")) as up:
        plan = post_plan(up.address, secrets=("token",))
        worker.start(plan, "c1")
        worker.wait_for(worker.has_heard)
        worker.channel.send(Secrets("c1", {"token": "s3cret-value"}))
        assert worker.ended("c1").verification.outcome == "verified"
    assert b"x-token: s3cret-value" in up.requests[0]


def test_a_call_runs_with_its_own_secrets_and_no_others(running: Template) -> None:
    worker = running.born("http")
    with upstream(ok(b"{}", "201 Created")) as up:
        plans = {name: post_plan(up.address, path=f"/{name}", secrets=("token",)) for name in ("one", "two")}
        for name, plan in plans.items():
            worker.give(plan, name, {"token": f"token-of-{name}"})
        for name in ("two", "one"):
            worker.allow(plans[name], name)
            assert worker.ended(name).outcome == "success"
    assert [b"x-token: token-of-two" in up.requests[0], b"x-token: token-of-one" in up.requests[1]] == [True, True]


def test_the_secrets_of_a_call_serve_no_later_one(running: Template) -> None:
    worker = running.born("http")
    with upstream(ok(b"{}", "201 Created")) as up:
        plan = post_plan(up.address, secrets=("token",))
        assert worker.call(plan, "c1", secrets={"token": "the-first-token"}).outcome == "success"
        worker.give(plan, "c1")  # the same call once more, which its notary knows to have ended
        worker.allow(plan, "c1")
        worker.wait_for(worker.has_heard)
        worker.channel.send(Secrets("c1", {"token": "the-second-token"}))
        assert worker.ended("c1").outcome == "success"
    assert b"x-token: the-second-token" in up.requests[1]


def test_a_word_repeated_after_the_result_repeats_the_result_to_the_notary_and_runs_nothing(
    running: Template, tmp_path: Path
) -> None:
    worker = running.born("fs")
    plan = write_plan(tmp_path, "a")
    first = worker.call(plan, "c1")
    (tmp_path / "a").unlink()
    worker.unsaid.clear()
    for _ in range(2):  # each notary that follows says it once
        worker.tie()
        worker.allow(plan, "c1")
        assert worker.attested() == first
    assert list(tmp_path.iterdir()) == []
    assert worker.call(write_plan(tmp_path, "b"), "c2").outcome == "success"  # the front heard nothing twice


def test_a_word_repeated_while_the_call_runs_runs_it_once(running: Template) -> None:
    with busy(running) as (worker, up, release):
        worker.tie()
        worker.allow(post_plan(up.address), "c1")
        release.set()
        first = worker.ended("c1")
        assert worker.attested() == first
        assert first.outcome == "success"
        assert len(up.requests) == 1


def test_a_result_that_no_notary_has_read_is_there_for_the_next_one(running: Template) -> None:
    worker = running.born()
    worker.start(ECHO, "c1")
    told = worker.receive(Result)
    worker.tie()
    assert worker.attested() == told


def test_a_half_read_result_is_sent_whole_to_the_next_notary(running: Template) -> None:
    worker = running.born()
    plan = plan_for("echo", {"v": "x" * 150_000})
    worker.allow(plan, "c1")
    worker.give(plan, "c1")
    assert worker.notary.receive() is None
    worker.tie()
    worker.allow(plan, "c1")
    assert worker.attested() == worker.receive(Result)


def test_results_that_are_settled_are_forgotten(running: Template, tmp_path: Path) -> None:
    worker = running.born("fs")
    plan = write_plan(tmp_path, "a")
    worker.call(plan, "c1")
    assert worker.unsaid == ["c1"]
    worker.call(write_plan(tmp_path, "b"), "c2")
    (tmp_path / "a").unlink()
    worker.call(plan, "c1")
    assert (tmp_path / "a").exists()  # it had nothing to repeat


def test_results_that_are_not_settled_are_kept_for_every_call_that_a_worker_may_have(running: Template) -> None:
    worker = running.born()
    plans = {f"c{number}": plan_for("echo", {"n": number}) for number in range(MAX_AHEAD)}
    told = {name: worker.call(plan, name, settled=()) for name, plan in plans.items()}
    worker.tie()
    for name, plan in reversed(plans.items()):
        worker.allow(plan, name, settled=())
        assert worker.attested() == told[name]


@pytest.mark.parametrize("settled", [("c2",), ("c3", "nobody's")])
def test_a_result_that_is_not_settled_outlives_others_that_are(running: Template, settled: tuple[str, ...]) -> None:
    worker = running.born()
    told = [worker.call(ECHO, name, settled=()) for name in ("c1", "c2", "c3")]
    worker.call(ECHO, "c4", settled=settled)
    worker.allow(ECHO, "c1", settled=())
    assert worker.attested() == told[0]
    worker.hang_up()
    assert running.exit_status(worker) == Exit.ORPHANED
