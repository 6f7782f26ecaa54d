"""A real http worker whose upstream refuses a token: the question, its answer, and every way in which none comes."""

import socket
from collections.abc import Callable, Iterator

import msgspec
import pytest

from ipc.configuration.secret_ways import AsToken
from ipc.messages.calling import Drop, Result, Secrets, TokenRefused
from ipc.plan import CallLimits, Plan, SecretUse
from ipc.process.exits import Exit
from tests.support.worker_peers import Worker
from tests.support.worker_plans import post_plan
from tests.support.worker_template import Template
from tests.support.worker_upstream import Upstream, ok, upstream

FIRST, SECOND = "first-token-1", "second-token-2"
WAY = AsToken("https://login.test/token", "client")
ISOLATIONS = ("pooled", "process", "shared")


@pytest.fixture
def guarded() -> Iterator[Upstream]:
    """An upstream that takes the second token alone."""
    servers: list[Upstream] = []

    def answer(connection: socket.socket) -> None:
        is_right = SECOND.encode() in servers[0].requests[-1]
        ok(b"{}", "201 Created" if is_right else "401 Unauthorized")(connection)

    with upstream(answer) as up:
        servers.append(up)
        yield up


def with_token(address: str, isolation: str = "pooled", **changes: object) -> Plan:
    use = SecretUse("token", way=WAY, domains=("upstream.test",))
    return msgspec.structs.replace(post_plan(address), secrets=(use,), isolation=isolation, **changes)


def begin(worker: Worker, plan: Plan, call_id: str = "c1") -> None:
    worker.give(plan, call_id, {"token": FIRST})
    worker.allow(plan, call_id)


def statuses(result: Result) -> list[tuple[int | None, bool]]:
    return [(seen.status, seen.resent) for seen in result.observations]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_request_whose_token_is_refused_is_sent_once_more_with_another(
    running: Template, guarded: Upstream, isolation: str
) -> None:
    worker = running.born("http")
    for name in ("c1", "c2"):
        begin(worker, with_token(guarded.address, isolation), name)
        assert worker.receive(TokenRefused) == TokenRefused(name, "token")
        worker.channel.send(Secrets(name, {"token": SECOND}))
        result = worker.ended(name)
        assert (result.outcome, result.verification.outcome, result.io_calls) == ("success", "verified", 2)
        assert statuses(result) == [(401, True), (201, False)]
        assert FIRST not in repr(result)
        assert SECOND not in repr(result)
    sent = [FIRST.encode() in request for request in guarded.requests]
    assert sent == [True, False, True, False]


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(
    "answer",
    [Secrets("c1", {"token": FIRST}), Secrets("c1", {}), Drop("c1", is_given_up=True)],
    ids=["the same", "none", "given up"],
)
def test_the_refusal_is_the_answer_where_the_front_has_no_other_token(
    running: Template, guarded: Upstream, isolation: str, answer: Secrets | Drop
) -> None:
    worker = running.born("http")
    begin(worker, with_token(guarded.address, isolation))
    worker.receive(TokenRefused)
    worker.channel.send(answer)
    result = worker.ended("c1")
    assert (result.outcome, result.verification.outcome) == ("success", "verification_failed")
    assert statuses(result) == [(401, False)]
    assert len(guarded.requests) == 1


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_call_waits_for_another_token_until_its_deadline_and_a_late_one_goes_nowhere(
    running: Template, guarded: Upstream, isolation: str
) -> None:
    worker = running.born("http")
    begin(worker, with_token(guarded.address, isolation, limits=CallLimits(timeout_seconds=3.0)))
    worker.receive(TokenRefused)
    assert worker.ended("c1").observations[0].status == 401
    worker.channel.send(Secrets("c1", {"token": SECOND}))
    assert worker.call(post_plan(guarded.address), "c2").io_calls == 1
    assert [SECOND.encode() in request for request in guarded.requests] == [False, False]


def test_calls_beside_one_that_waits_for_another_token_go_on(running: Template, guarded: Upstream) -> None:
    worker = running.born("http")
    plan = with_token(guarded.address, "shared")
    names = ("c1", "c2", "c3")
    for name in names:
        begin(worker, plan, name)
        assert worker.receive(TokenRefused).call_id == name
    with upstream(ok(b"{}", "201 Created")) as other:
        beside = msgspec.structs.replace(post_plan(other.address), isolation="shared")
        assert worker.call(beside, "beside").outcome == "success"
    for name in reversed(names):
        worker.channel.send(Secrets(name, {"token": SECOND}))
        assert statuses(worker.ended(name)) == [(401, True), (201, False)]


@pytest.mark.parametrize("isolation", ["pooled", "shared"])
def test_calls_that_are_given_to_a_worker_while_one_waits_for_another_token_run(
    running: Template, guarded: Upstream, isolation: str
) -> None:
    worker = running.born("http")
    begin(worker, with_token(guarded.address, isolation))
    worker.receive(TokenRefused)
    with upstream(ok(b"{}", "201 Created")) as other:
        plan = msgspec.structs.replace(post_plan(other.address), isolation=isolation)
        worker.give(plan, "c2")
        worker.channel.send(Secrets("c1", {"token": SECOND}))
        assert worker.ended("c1").verification.outcome == "verified"
        worker.allow(plan, "c2")
        assert worker.ended("c2").outcome == "success"


def hung_up(worker: Worker) -> None:
    worker.sock.shutdown(socket.SHUT_RDWR)


def strange(worker: Worker) -> None:
    worker.channel.send(Secrets("another", {"token": SECOND}))


@pytest.mark.parametrize("isolation", ["pooled", "shared"])
@pytest.mark.parametrize(("breaks", "code"), [(hung_up, Exit.ORPHANED), (strange, Exit.PROTOCOL)])
def test_the_notary_hears_of_a_call_whose_front_breaks_off_while_it_waits_for_another_token(
    running: Template, guarded: Upstream, isolation: str, breaks: Callable[[Worker], None], code: Exit
) -> None:
    worker = running.born("http")
    begin(worker, with_token(guarded.address, isolation, limits=CallLimits(timeout_seconds=3.0)))
    worker.receive(TokenRefused)
    breaks(worker)
    assert worker.attested().observations[0].status == 401
    assert running.exit_status(worker) == code
