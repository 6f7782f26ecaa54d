"""Threads that run shared calls, with runners that a test plays."""

import select
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from ipc.messages.attesting import Permit
from ipc.messages.calling import Call, Result, Verification
from ipc.plan import seal
from tests.support.worker_plans import make_plan, word_for
from workers.crew import Crew, EndedCall
from workers.host.http import Renew

PLAN = make_plan(isolation="shared", profile="http")


class HeldRunner:
    """Ends each call once it may."""

    outside: Any = None

    def __init__(self, may_end: threading.Event) -> None:
        self.may_end = may_end

    def run(self, call: Call, word: Permit, secrets: Mapping[str, str], renew: Renew) -> Result:
        assert self.may_end.wait(300)
        if call.call_id == "fails":
            raise MemoryError
        return Result(call.call_id, "success", "{}", None, Verification("skipped"), (), 5, 5, 0)


class WatchedSecrets(dict[str, str]):
    """Secrets that can be seen to be gone."""


Begin = Callable[..., None]


def crew_of(may_end: threading.Event, **options: Any) -> Crew:
    make: Any = lambda: HeldRunner(may_end)  # noqa: E731
    crew = Crew(make, **options)
    crew.start()
    return crew


def begin(crew: Crew, name: str, secrets: Mapping[str, str] | None = None, seconds: float = 600.0) -> None:
    assert crew.refusal(PLAN) is None
    crew.begin(Call(name, seal(PLAN).encoded, seconds), word_for(PLAN, name), secrets or {})


def taken(crew: Crew, count: int) -> list[EndedCall]:
    """The next `count` calls that have ended, as the worker's loop takes them."""
    calls: list[EndedCall] = []
    poll = select.poll()
    poll.register(crew.fileno(), select.POLLIN)
    while len(calls) < count:
        assert poll.poll(60_000), "no call ended in time"
        if (one := crew.take()) is not None:
            assert isinstance(one, EndedCall)
            calls.append(one)
    return calls


def test_nothing_of_a_call_stays_in_its_thread_once_it_has_ended() -> None:
    may_end = threading.Event()
    crew = crew_of(may_end)
    secrets = WatchedSecrets(token="s3cret-value")
    seen = weakref.ref(secrets)
    begin(crew, "c1", secrets)
    del secrets
    assert seen() is not None
    may_end.set()
    assert [one.call.call_id for one in taken(crew, 1)] == ["c1"]
    deadline = time.monotonic() + 60
    while seen() is not None:  # the thread lets go of it after it has told of the end
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert not crew.is_busy


def test_calls_that_end_are_all_taken_and_each_once() -> None:
    may_end = threading.Event()
    may_end.set()
    crew = crew_of(may_end)
    for turn in range(50):
        names = [f"{turn}-{number}" for number in range(16)]
        for name in names:
            begin(crew, name)
        assert sorted(one.call.call_id for one in taken(crew, 16)) == sorted(names)
        assert crew.take() is None


def test_a_call_is_stuck_once_it_has_gone_on_for_long_beyond_its_deadline() -> None:
    may_end = threading.Event()
    crew = crew_of(may_end, stuck_seconds=0.05)
    assert crew.patience() is None
    begin(crew, "sound")
    assert crew.stuck() == []
    begin(crew, "stuck", seconds=0.0)
    assert crew.patience() is not None
    deadline = time.monotonic() + 60
    while [call.call_id for call in crew.stuck()] != ["stuck"]:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert crew.patience() == 0.0
    may_end.set()
    taken(crew, 2)
    assert crew.stuck() == []


def test_an_error_of_a_runner_is_taken_as_the_end_of_its_call() -> None:
    may_end = threading.Event()
    may_end.set()
    crew = crew_of(may_end)
    for name in ("c1", "fails", "c2"):
        begin(crew, name)
    ended = {one.call.call_id: one.ended for one in taken(crew, 3)}
    assert isinstance(ended.pop("fails"), MemoryError)
    assert all(isinstance(one, Result) for one in ended.values())
    assert not crew.is_busy


def test_a_thread_that_still_looks_up_a_name_is_the_last_to_get_another_call() -> None:
    class Looking(HeldRunner):
        def run(self, call: Call, word: Permit, secrets: Mapping[str, str], renew: Renew) -> Result:
            self.outside = SimpleNamespace(resolver=SimpleNamespace(is_stuck=call.call_id == "stuck"))
            runners[call.call_id] = self
            return super().run(call, word, secrets, renew)

    runners: dict[str, HeldRunner] = {}
    may_end = threading.Event()
    may_end.set()
    make: Any = lambda: Looking(may_end)  # noqa: E731
    crew = Crew(make)
    crew.start()
    for name in ("sound", "stuck", "next", "last"):
        begin(crew, name)
        assert [one.is_stuck for one in taken(crew, 1)] == [name == "stuck"]
    assert runners["sound"] is runners["stuck"]
    assert runners["next"] is runners["last"] is not runners["stuck"]
