"""A real worker's desk with calls given ahead: their order, those taken back, and those that were refused."""

import msgspec
import psutil
import pytest

from ipc.limits import MAX_AHEAD
from ipc.messages.attesting import NoPermit, NotaryToWorker, Permit
from ipc.messages.calling import Drop
from ipc.process.exits import Exit
from tests.support.worker_plans import plan_for, post_plan
from tests.support.worker_template import Template, busy
from tests.support.worker_upstream import Upstream

ECHO = plan_for("echo", {})

REFUSED_PLANS = 3000


def paths(up: Upstream) -> list[bytes]:
    return [request.split(b" ")[1] for request in up.requests]


def test_calls_given_ahead_run_in_the_order_of_the_words(running: Template) -> None:
    with busy(running) as (worker, up, release):
        plans = {name: post_plan(up.address, path=f"/{name}") for name in ("c2", "c3", "c4")}
        for name, plan in plans.items():
            worker.give(plan, name)
        for name in ("c3", "c4", "c2"):
            worker.allow(plans[name], name)
        release.set()
        results = [worker.ended(name) for name in ("c1", "c3", "c4", "c2")]
        assert {result.outcome for result in results} == {"success"}
        assert paths(up) == [b"/x", b"/c3", b"/c4", b"/c2"]


def test_as_many_calls_as_a_worker_may_have_are_served_over_and_over(running: Template) -> None:
    worker = running.born()
    for turn in range(20):
        plans = {f"{turn}-{number}": plan_for("echo", {"n": number}) for number in range(MAX_AHEAD)}
        for name, plan in plans.items():
            worker.start(plan, name)
        assert [worker.ended(name).output for name in plans] == [plan.provider_input for plan in plans.values()]


def test_words_that_a_busy_worker_has_not_taken_can_be_taken_back_and_are_not_run(running: Template) -> None:
    with busy(running) as (worker, up, release):
        for name in ("c2", "c3"):
            plan = post_plan(up.address, path=f"/{name}")
            worker.start(plan, name)
        taken = [msgspec.msgpack.decode(packet[1:], type=NotaryToWorker) for packet in worker.take_back()]
        assert [word.call_id for word in taken if isinstance(word, Permit)] == ["c2", "c3"]
        release.set()
        assert worker.ended("c1").outcome == "success"
        for name in ("c2", "c3"):
            worker.channel.send(Drop(name))
        assert worker.call(post_plan(up.address, path="/c4"), "c4").outcome == "success"
        assert paths(up) == [b"/x", b"/c4"]


def test_a_word_that_a_worker_has_taken_can_not_be_taken_back(running: Template) -> None:
    with busy(running) as (worker, _, release):
        assert worker.take_back() == []
        release.set()
        assert worker.ended("c1").outcome == "success"


def test_a_call_that_was_taken_back_can_be_given_to_the_same_worker_again(running: Template) -> None:
    with busy(running) as (worker, up, release):
        plan = post_plan(up.address, path="/c2")
        worker.start(plan, "c2")
        assert len(worker.take_back()) == 1
        worker.channel.send(Drop("c2"))
        release.set()
        assert worker.ended("c1").outcome == "success"
        assert worker.call(plan, "c2").outcome == "success"
        assert paths(up) == [b"/x", b"/c2"]


def test_a_call_that_is_refused_while_the_worker_is_busy_is_not_run(running: Template) -> None:
    with busy(running) as (worker, up, release):
        for name in ("c2", "c3"):
            worker.give(post_plan(up.address, path=f"/{name}"), name)
        worker.notary.send(NoPermit("c2"))
        worker.allow(post_plan(up.address, path="/c3"), "c3")
        worker.channel.send(Drop("c2"))
        release.set()
        assert [worker.ended(name).outcome for name in ("c1", "c3")] == ["success", "success"]
        assert paths(up) == [b"/x", b"/c3"]


def test_plans_that_were_refused_take_no_room(running: Template) -> None:
    worker = running.born()
    plan = plan_for("echo", {"v": "x" * 30_000})  # request and input: 60 kB
    process = psutil.Process(worker.pid)
    worker.call(plan)
    before = process.memory_info().rss
    for number in range(REFUSED_PLANS):
        worker.give(plan, f"refused-{number}")
        worker.notary.send(NoPermit(f"refused-{number}"))
        worker.channel.send(Drop(f"refused-{number}"))
    assert worker.call(plan).outcome == "success"
    assert process.memory_info().rss - before < 20 * 1024 * 1024


def test_a_plan_that_was_dropped_before_the_notary_refused_it_is_forgotten_as_well(running: Template) -> None:
    worker = running.born()
    for number in range(50):
        name = f"refused-{number}"
        worker.give(ECHO, name, {"token": "s3cret-value"})
        worker.channel.send(Drop(name))
        worker.notary.send(NoPermit(name))
    assert worker.call(ECHO).outcome == "success"


def test_no_word_for_a_call_is_heard_twice_without_harm(running: Template) -> None:
    worker = running.born()
    worker.give(ECHO, "refused")
    worker.channel.send(Drop("refused"))
    for _ in range(3):
        worker.notary.send(NoPermit("refused"))
    assert worker.call(ECHO).outcome == "success"


@pytest.mark.parametrize("is_refused", [False, True], ids=["word", "no word"])
def test_a_worker_that_waits_for_its_front_notices_that_it_is_gone(running: Template, is_refused: bool) -> None:
    worker = running.born()
    if is_refused:
        worker.notary.send(NoPermit("c1"))
    else:
        worker.allow(ECHO, "c1")
    worker.wait_for(worker.has_heard)
    worker.hang_up()
    assert running.exit_status(worker) == Exit.ORPHANED
    assert not worker.has_told()
