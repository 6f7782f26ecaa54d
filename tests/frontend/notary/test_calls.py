"""An operation that is answered only when its call has ended: its own time, its cancellation, and taking it back."""

import gc
import weakref

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from frontend.notary.client import MAX_WAITING
from frontend.notary.errors import NotarySilent, NotaryUnavailable
from frontend.notary.pending import CallHooks
from ipc.messages.notary_frames import Answered, Begun
from ipc.operations.holds import GetHold
from ipc.operations.leases import ReadEpoch
from tests.support.scripted_notary import Client, answer, at_work, attach
from tests.support.worker_desk import until

CALL_SECONDS = 60.0


class Call:
    """A call that a task waits for, unless there is no nursery for it."""

    def __init__(self, client: Client, nursery: trio.Nursery | None, seconds: float = CALL_SECONDS) -> None:
        self.client = client
        self.said: list[str] = []
        self.heard: object = None
        self.scope = trio.CancelScope()
        self.ended_at = 0.0
        course = CallHooks(
            seconds, lambda: self.say("begun"), lambda: self.say("late"), lambda: self.say("cancelled")
        )  # fmt: skip
        self.waiter = client.begin(ReadEpoch(), course)
        if nursery is not None:
            nursery.start_soon(self.wait)

    def say(self, what: str) -> None:
        self.said.append(f"{what} at {trio.current_time():.0f}")

    def forget(self) -> bool:
        is_forgotten = self.client.forget(self.waiter)
        if is_forgotten:
            self.waiter.end()
        return is_forgotten

    async def wait(self) -> None:
        with self.scope:
            try:
                self.heard = await self.client.answer_of(self.waiter)
            except NotaryUnavailable as error:
                self.heard = error
            self.ended_at = trio.current_time()
            await trio.lowlevel.checkpoint()


async def test_a_call_that_has_begun_has_its_own_time_and_is_late_once_after_it(autojump_clock: MockClock) -> None:
    async with at_work(wait_seconds=10) as (client, nursery):
        notary, call, began = attach(client), Call(client, nursery), trio.current_time()
        number = (await notary.asked()).number
        await trio.sleep(5)
        await notary.say(Begun(number), Begun(number))
        await trio.sleep(CALL_SECONDS - 1)
        assert call.said == [f"begun at {began + 5:.0f}"]
        assert call.heard is None
        await trio.sleep(9)
        assert call.said == [f"begun at {began + 5:.0f}", f"late at {began + 65:.0f}"]
        assert call.heard is None, "it has the usual patience after that"
        await trio.sleep(5)
        assert isinstance(call.heard, NotarySilent)
        assert call.heard.is_begun
        assert call.ended_at == pytest.approx(began + 75, abs=0.5)
        assert len(call.said) == 2


async def test_a_call_shorter_than_the_usual_patience_is_late_in_its_own_time(autojump_clock: MockClock) -> None:
    async with at_work(wait_seconds=10) as (client, nursery):
        notary, call, began = attach(client), Call(client, nursery, seconds=3), trio.current_time()
        await notary.say(Begun((await notary.asked()).number))
        await trio.sleep(4)
        assert call.said == [f"begun at {began:.0f}", f"late at {began + 3:.0f}"]


async def test_a_call_that_does_not_begin_is_silent_after_the_usual_patience(autojump_clock: MockClock) -> None:
    async with at_work(wait_seconds=10) as (client, nursery):
        notary, call, began = attach(client), Call(client, nursery), trio.current_time()
        await notary.asked()
        await trio.sleep(11)
        assert isinstance(call.heard, NotarySilent)
        assert not call.heard.is_begun
        assert call.ended_at == pytest.approx(began + 10, abs=0.5)
        assert call.said == [], "nothing was late that had not begun"


async def test_the_end_of_a_call_is_heard_after_it_was_late(autojump_clock: MockClock) -> None:
    async with at_work(wait_seconds=10) as (client, nursery):
        notary, call = attach(client), Call(client, nursery, seconds=3)
        number = (await notary.asked()).number
        await notary.say(Begun(number))
        await trio.sleep(8)
        await notary.say(answer(number, 7))
        await trio.sleep(1)
        assert call.heard == 7


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_call_whose_task_is_cancelled_says_so_once_and_is_waited_for(
    autojump_clock: MockClock, has_begun: bool
) -> None:
    async with at_work(wait_seconds=10) as (client, nursery):
        notary, call, began = attach(client), Call(client, nursery), trio.current_time()
        number = (await notary.asked()).number
        if has_begun:
            await notary.say(Begun(number))
            await trio.sleep(20)
        call.scope.cancel()
        call.scope.cancel()
        await wait_all_tasks_blocked()
        at = began + (20 if has_begun else 0)
        assert call.said[int(has_begun) :] == [f"cancelled at {at:.0f}"]
        assert call.heard is None
        assert not call.scope.cancelled_caught
        await notary.say(answer(number, 7))
        await trio.sleep(1)
        assert call.heard == 7
        assert call.scope.cancelled_caught


async def test_a_cancelled_call_that_does_not_end_is_given_up_after_the_usual_patience(
    autojump_clock: MockClock,
) -> None:
    async with at_work(wait_seconds=10) as (client, nursery):
        notary, call, began = attach(client), Call(client, nursery), trio.current_time()
        await notary.say(Begun((await notary.asked()).number))
        await trio.sleep(20)
        call.scope.cancel()
        await trio.sleep(11)
        assert isinstance(call.heard, NotarySilent)
        assert call.heard.is_begun
        assert call.ended_at == pytest.approx(began + 30, abs=0.5)
        assert len(call.said) == 2, "it is not late besides"


async def test_what_is_taken_back_before_it_was_sent_is_never_asked() -> None:
    async with at_work() as (client, nursery):
        notary = attach(client)
        forgotten, asked = Call(client, None), Call(client, nursery)
        assert client.forget(forgotten.waiter)
        assert not client.forget(forgotten.waiter)
        assert (await notary.asked()).number == asked.waiter.number
        for _ in range(MAX_WAITING - 1):
            client.begin(ReadEpoch())
        with pytest.raises(NotaryUnavailable):
            client.begin(ReadEpoch())


async def test_what_was_sent_is_not_taken_back_not_even_when_it_is_to_be_sent_again() -> None:
    async with at_work() as (client, nursery):
        first, call = attach(client), Call(client, nursery)
        number = (await first.asked()).number
        assert not call.forget()
        first.die()
        await wait_all_tasks_blocked()
        second = attach(client)  # it is queued for this one
        assert not call.forget()
        assert (await second.asked()).number == number


async def test_a_call_is_asked_again_of_the_next_notary_and_begins_once() -> None:
    async with at_work() as (client, nursery):
        first, call = attach(client), Call(client, nursery)
        number = (await first.asked()).number
        await first.say(Begun(number))
        await wait_all_tasks_blocked()
        first.die()
        await wait_all_tasks_blocked()
        second = attach(client)
        assert (await second.asked()).number == number
        await second.say(Begun(number), answer(number, 7))
        await until(lambda: call.heard is not None)
        assert call.heard == 7
        assert [one.split()[0] for one in call.said] == ["begun"]


async def test_what_is_posted_is_sent_once_and_its_answer_is_nobody_s() -> None:
    async with at_work() as (client, nursery):
        first, _ = attach(client), Call(client, nursery)
        client.post(GetHold("posted"))
        asked, posted = await first.asked(), await first.asked()
        assert posted.operation == GetHold("posted")
        await first.say(answer(posted.number, 3))
        await wait_all_tasks_blocked()
        first.die()
        await wait_all_tasks_blocked()
        client.post(GetHold("while there is none"))
        second = attach(client)
        client.post(GetHold("later"))
        assert (await second.asked()).number == asked.number
        assert (await second.asked()).operation == GetHold("later")


async def test_an_end_that_could_not_be_written_says_that_the_call_had_begun() -> None:
    async with at_work() as (client, nursery):
        notary, call = attach(client), Call(client, nursery)
        number = (await notary.asked()).number
        await notary.say(Answered(number, answer(0).value, "unavailable", "ledger", "full", is_begun=True))
        await until(lambda: call.heard is not None)
        assert isinstance(call.heard, NotaryUnavailable)
        assert (type(call.heard), call.heard.is_begun, call.heard.part) == (NotaryUnavailable, True, "ledger")


async def test_an_answered_call_is_freed_at_once_without_the_garbage_collector() -> None:
    async with at_work() as (client, nursery):
        # Its hooks refer to the call, which refers to its operation.
        notary, calls = attach(client), [Call(client, nursery)]
        await notary.say(answer((await notary.asked()).number, 7))
        await until(lambda: calls[0].heard == 7)
        await wait_all_tasks_blocked()
        freed = weakref.ref(calls[0])
        gc.disable()
        try:
            calls.clear()
            assert freed() is None
        finally:
            gc.enable()


async def test_the_times_of_a_call_are_those_that_the_notary_took_for_its_intent_and_for_its_end() -> None:
    observed: list[tuple[str, float, str | None, str | None]] = []
    stored: list[tuple[str, float]] = []
    async with at_work(wait_seconds=10) as (client, nursery):
        client.observe = lambda *seen: observed.append(seen)
        client.observe_store = lambda *seen: stored.append(seen)
        notary, _ = attach(client), Call(client, nursery)
        ended = answer((await notary.asked()).number, 1, "unavailable", "ledger")
        await notary.say(msgspec.structs.replace(ended, took_us=(2000, 30_000), store_us={"debit": 4000}))
        await until(lambda: bool(observed))
    assert observed == [("Open", 0.002, None, None), ("Close", 0.03, "unavailable", "ledger")]
    assert stored == [("debit", 0.004)]
