"""Large request bodies: other requests are answered while one is read, and the answers stay the same."""

import hashlib
import threading
from functools import partial
from typing import Any

import pytest
import rfc8785
import trio
from msgspec.structs import force_setattr
from trio.testing import wait_all_tasks_blocked

from frontend.calls import deciding
from frontend.limits.rates import TooMuch
from frontend.schemas.large_bodies import LARGE_BYTES, LargeBodies, cost_of
from frontend.schemas.parser import parse_body
from frontend.schemas.validator import Validator
from tests.support.front_core import Core, action
from tests.support.worker_desk import DEADLINE, until

SCHEMA = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "number"}}}, "required": ["n"]}
ECHO = action(io={"max_request_bytes": 1_048_576, "request_schema": SCHEMA})
FLOATS = {"n": [index / 7 for index in range(52_000)]}
"""Close to a megabyte."""
SMALL = {"n": [1]}
ME = ("principal me", "session mine")


class Slow:
    """A validator that stands still over each large body, in the thread that asks it, until the test goes on."""

    def __init__(self, core: Core) -> None:
        echo = core.services.configuration.current.registry.get("echo")
        assert echo is not None
        assert echo.request_validator is not None
        self._real: Validator = echo.request_validator
        self.entered = 0
        self.was_let_go = True
        self._go = threading.Event()
        force_setattr(echo, "request_validator", self)

    def accept(self, value: Any) -> Any:
        if value != SMALL:
            self.entered += 1
            self.was_let_go = self._go.wait(DEADLINE) and self.was_let_go
        return self._real.accept(value)

    def go(self) -> None:
        self._go.set()


pytestmark = pytest.mark.front(ECHO)


async def test_others_are_answered_while_a_megabyte_of_floats_is_validated(core: Core) -> None:
    slow, answers = Slow(core), dict[str, int]()
    agent, other = await core.agent(), await core.agent()

    async def call_large() -> None:
        answers["large"] = (await agent.call(body=FLOATS))[0]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call_large)
        await until(lambda: slow.entered == 1)
        assert (await core.ask("GET", "/healthz")).status == 200
        assert (await other.call(body=SMALL))[0] == 200
        assert answers == {}, "the large one is still being validated"
        slow.go()
    assert slow.was_let_go, "the loop stood still until the validator had given up"
    assert answers == {"large": 200}


async def test_a_body_that_is_large_or_has_many_containers_is_parsed_in_another_thread_too(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = list[int]()

    def parsed(body: bytes) -> Any:
        threads.append(threading.get_ident())
        return parse_body(body)

    monkeypatch.setattr(deciding, "parse_body", parsed)
    agent, here = await core.agent(), threading.get_ident()
    bodies: list[Any] = [SMALL, FLOATS, {"n": [[]] * 400}]
    assert [(await agent.call(body=body))[0] for body in bodies] == [200, 200, 422]
    assert [thread == here for thread in threads] == [True, False, False]


@pytest.mark.parametrize(
    ("body", "is_large"),
    [(b"[" + b"[]," * 250 + b"0]", False), (b"[" + b"[]," * 300 + b"0]", True), (b"{}" * 300, True),
     (b"1," * LARGE_BYTES, True), (b"1," * 300, False)],
)  # fmt: skip
def test_a_body_of_many_containers_counts_as_large(body: bytes, is_large: bool) -> None:
    assert (cost_of(body) > LARGE_BYTES) is is_large


async def test_no_parsed_body_waits_for_another_turn(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = list[str]()

    def note(name: str) -> None:
        real = getattr(deciding, name)

        def noted(*args: Any, **more: Any) -> Any:
            steps.append(name)
            return real(*args, **more)

        monkeypatch.setattr(deciding, name, noted)

    note("parse_body")
    note("draft")
    agents = [await core.agent(max_calls=5) for _ in range(3)]
    async with trio.open_nursery() as nursery:
        for agent in agents:
            nursery.start_soon(lambda agent: agent.call(body=FLOATS), agent)
    assert steps == ["parse_body", "draft"] * 3


async def test_the_request_hash_of_a_large_body_is_that_of_its_canonical_form(core: Core) -> None:
    agent = await core.agent()
    status, body = await agent.call(body=FLOATS)
    assert (status, body["output"]) == (200, FLOATS)
    (event,) = await core.events(event_type="ActionCall")
    assert event["request_hash"] == "sha256:" + hashlib.sha256(rfc8785.dumps(FLOATS)).hexdigest()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"n":[' + b"1.5," * 90_000 + b"]}", "(body): json"),
        (b'{"n":[' + b"1.5," * 90_000 + b'"x"]}', "/n/90000: must be a number"),
        (b'{"n":[' + b"1.5," * 90_000 + b"9007199254740993]}", "(body): number_range"),
    ],
)
async def test_a_large_body_is_refused_as_a_small_one_is(core: Core, body: bytes, reason: str) -> None:
    agent = await core.agent()
    assert await agent.call(body=body) == (422, {"error": "schema_violation", "reason": reason})
    (event,) = await core.events(event_type="ActionCall")
    assert (event["error_code"], event["reason"]) == ("schema_violation", reason)


async def test_only_what_is_large_goes_to_another_thread() -> None:
    bodies, here = LargeBodies(), threading.get_ident()
    assert await bodies.run(LARGE_BYTES, ME, threading.get_ident) == here
    assert await bodies.run(LARGE_BYTES + 1, ME, threading.get_ident) != here


async def test_large_bodies_are_worked_on_one_at_a_time() -> None:
    bodies, go, began = LargeBodies(), threading.Event(), threading.Event()
    inside, together = set[int](), list[int]()

    def work() -> None:
        inside.add(threading.get_ident())
        together.append(len(inside))
        began.set()
        go.wait(DEADLINE)
        inside.discard(threading.get_ident())

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(bodies.run, LARGE_BYTES + 1, ME, work)
        await until(began.is_set)
        await wait_all_tasks_blocked()
        go.set()
    assert together == [1, 1, 1]


async def test_who_waits_for_a_large_body_can_be_cancelled() -> None:
    bodies, go, began, ended = LargeBodies(), threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        go.wait(DEADLINE)
        ended.set()

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(bodies.run, LARGE_BYTES + 1, ME, work)
        await until(began.is_set)
        nursery.cancel_scope.cancel()
    assert not ended.is_set()
    go.set()
    with trio.fail_after(DEADLINE):
        assert await bodies.run(LARGE_BYTES + 1, ME, ended.is_set), "the thread that was left has given its place back"


async def test_whoever_has_used_least_is_next_and_one_with_many_waits_for_itself() -> None:
    bodies, go, began = LargeBodies(), threading.Event(), threading.Event()
    order = list[str]()

    def work(name: str) -> None:
        began.set()
        go.wait(DEADLINE)
        order.append(name)

    async def send(principal: str, name: str) -> None:
        await bodies.run(LARGE_BYTES + 1, (f"principal {principal}", f"session {name}"), partial(work, name))

    async with trio.open_nursery() as nursery:
        for name in ("a1", "a2", "a3"):
            nursery.start_soon(send, "a", name)
            await wait_all_tasks_blocked()
        nursery.start_soon(send, "b", "b1")
        await until(began.is_set)
        await wait_all_tasks_blocked()
        go.set()
    assert order == ["a1", "b1", "a2", "a3"]


async def test_a_turn_that_does_not_come_in_time_is_refused_as_too_much_and_others_go_on() -> None:
    bodies, go, began = LargeBodies(wait_seconds=0.0), threading.Event(), threading.Event()

    def work() -> str:
        began.set()
        go.wait(DEADLINE)
        return "done"

    async def first() -> None:
        assert await bodies.run(LARGE_BYTES + 1, ME, work) == "done"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        await until(began.is_set)
        with pytest.raises(TooMuch) as refused:
            await bodies.run(LARGE_BYTES + 1, ("principal other", "session other"), work)
        assert (refused.value.status, refused.value.code) == (429, "rate_limit_exceeded")
        go.set()
    assert await bodies.run(LARGE_BYTES + 1, ME, work) == "done"
