"""The way to the notary: whatever order it answers in, whenever it dies, each operation is done and answered once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from frontend.clock import ClockError
from frontend.notary.client import MAX_WAITING
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from frontend.notary.in_force import NOTHING
from frontend.webhooks.outbox import DELIVERERS
from ipc.channel.framing import encode_frame
from ipc.limits import MAX_NOTARY_FRAME
from ipc.messages.delivering import Welcome, Woken
from ipc.messages.notary_frames import FrontFacts
from ipc.operations.holds import GetHold
from ipc.operations.leases import ReadEpoch
from ipc.operations.operation import Operation
from tests.support.logs import capture_logs
from tests.support.scripted_notary import Client, Scripted, answer, at_work, attach
from tests.support.worker_desk import until


class Askers:
    """Tasks that ask for epochs, and what each heard."""

    def __init__(self, client: Client, nursery: trio.Nursery) -> None:
        self.heard: dict[str, Any] = {}
        self._client, self._nursery = client, nursery

    def ask(self, name: str, operation: Operation[Any] | None = None, seconds: float | None = None) -> None:
        self._nursery.start_soon(self._ask, name, operation or ReadEpoch(), seconds)

    async def _ask(self, name: str, operation: Operation[Any], seconds: float | None) -> None:
        try:
            self.heard[name] = await self._client.ask(operation, seconds=seconds)
        except (NotaryUnavailable, NotaryRefused, ClockError) as error:
            self.heard[name] = error


@asynccontextmanager
async def of_notary(*, greets: bool = True, **how: Any) -> AsyncIterator[tuple[Client, Scripted, Askers]]:
    """A client, a notary that it is attached to, and those who ask it."""
    async with at_work(**how) as (client, nursery):
        yield client, attach(client, greets=greets), Askers(client, nursery)


async def test_answers_come_in_any_order_and_reach_the_task_that_asked() -> None:
    async with of_notary() as (_, notary, askers):
        for name in "abc":
            askers.ask(name)
        numbers = [(await notary.asked()).number for _ in "abc"]
        await notary.say(*(answer(number, number * 10) for number in reversed(numbers)))
        await until(lambda: len(askers.heard) == 3)
        assert sorted(askers.heard.values()) == [number * 10 for number in numbers]
        assert len(set(numbers)) == 3


async def test_what_one_turn_of_the_loop_asks_goes_out_in_the_order_in_which_it_was_asked() -> None:
    async with of_notary() as (_, notary, askers):
        for count in range(50):
            askers.ask(str(count))
        numbers = [(await notary.asked()).number for _ in range(50)]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        ("unavailable", NotaryUnavailable),
        ("fault", NotaryUnavailable),
        ("refused", NotaryRefused),
        ("clock", ClockError),
    ],
)
async def test_a_problem_of_the_notary_is_an_error_of_its_own_kind(problem: str, error: type[Exception]) -> None:
    async with of_notary() as (_, notary, askers):
        askers.ask("a")
        await notary.say(answer((await notary.asked()).number, None, problem, "budget"))
        await until(lambda: "a" in askers.heard)
        assert type(askers.heard["a"]) is error
        assert str(askers.heard["a"]) == "why"
        assert getattr(askers.heard["a"], "part", "budget") == "budget"


async def test_an_operation_that_is_not_answered_in_time_is_silent_and_a_late_answer_is_dropped(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with of_notary(wait_seconds=10) as (_, notary, askers):
        askers.ask("short", seconds=1)
        askers.ask("usual")
        first = await notary.asked()
        began = trio.current_time()
        await until_heard(askers, "short")
        assert isinstance(askers.heard["short"], NotarySilent)
        assert trio.current_time() - began == pytest.approx(1, abs=0.1)
        await until_heard(askers, "usual")
        assert isinstance(askers.heard["usual"], NotarySilent)
        assert trio.current_time() - began == pytest.approx(10, abs=0.1)
        askers.ask("later")
        await notary.asked()
        later = await notary.asked()
        await notary.say(answer(first.number, 1), answer(later.number, 2))
        await until_heard(askers, "later")
        assert askers.heard["later"] == 2


async def until_heard(askers: Askers, name: str) -> None:
    while name not in askers.heard:  # noqa: ASYNC110 (nothing tells of it)
        await trio.sleep(0.01)


async def test_what_a_notary_did_not_answer_is_asked_again_of_the_next_one_under_the_same_number() -> None:
    async with of_notary() as (client, first, askers):
        askers.ask("answered")
        await wait_all_tasks_blocked()
        askers.ask("open")
        numbers = [(await first.asked()).number for _ in range(2)]
        await first.say(answer(numbers[0], 1))
        await until(lambda: "answered" in askers.heard)
        first.die()
        await wait_all_tasks_blocked()
        askers.ask("meanwhile")
        await wait_all_tasks_blocked()
        second = attach(client)
        again = [await second.asked() for _ in range(2)]
        assert again[0].number == numbers[1]
        await second.say(*(answer(asked.number, 2) for asked in again))
        await until(lambda: len(askers.heard) == 3)
        assert askers.heard == {"answered": 1, "open": 2, "meanwhile": 2}


async def test_what_a_notary_answered_before_its_end_is_not_asked_again() -> None:
    """Its successor remembers the last unit alone: what was answered before that would be done twice."""
    async with of_notary() as (client, first, askers):
        askers.ask("a")
        number = (await first.asked()).number
        first.say_now(answer(number, 1))
        first.die()
        second = attach(client)  # in the same turn of the loop: no task has read the answer yet
        await until(lambda: "a" in askers.heard)
        assert askers.heard == {"a": 1}
        askers.ask("b")
        assert (await second.asked()).number != number


@pytest.mark.parametrize("cut_at", [2, 40])
async def test_a_frame_that_the_end_of_a_notary_cut_is_asked_whole_of_the_next_one(cut_at: int) -> None:
    async with of_notary() as (client, first, askers):
        askers.ask("large", large())
        await first.take(cut_at)
        await wait_all_tasks_blocked()
        first.die()
        second = attach(client)
        asked = await second.asked()
        assert asked.operation == large()
        await second.say(answer(asked.number, None))
        await until(lambda: askers.heard == {"large": None})


def large(size: int = 4_000_000) -> Operation[Any]:
    """An operation far beyond what a socket holds."""
    return GetHold("x" * size)


async def test_frames_larger_than_the_socket_holds_arrive_whole_and_in_order() -> None:
    async with of_notary() as (_, notary, askers):
        for count in range(5):
            askers.ask(f"large {count}", large(1_000_000 + count))
            askers.ask(f"small {count}")
            await wait_all_tasks_blocked()
        asked = [await notary.asked() for _ in range(10)]
        assert [one.number for one in asked] == sorted(one.number for one in asked)
        small = [one.number for one in asked if one.operation == ReadEpoch()]
        await notary.say(*(answer(one.number, one.number if one.number in small else None) for one in asked))
        await until(lambda: len(askers.heard) == 10)
        assert [askers.heard[f"small {count}"] for count in range(5)] == small
        assert [askers.heard[f"large {count}"] for count in range(5)] == [None] * 5


async def test_what_waits_for_a_notary_that_does_not_read_is_forgotten_when_it_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with of_notary(wait_seconds=1) as (_, notary, askers):
        askers.ask("stuck", large())
        await wait_all_tasks_blocked()
        for count in range(20):
            askers.ask(str(count), large(100_000))
        await until_heard(askers, "19")
        assert all(isinstance(heard, NotarySilent) for heard in askers.heard.values())
        askers.ask("fresh")
        first, second = await notary.asked(), await notary.asked()
        assert first.operation == large(), "what has begun to be sent is sent to its end"
        assert second.operation == ReadEpoch()


async def test_an_operation_too_large_for_any_frame_is_refused_and_never_sent() -> None:
    async with of_notary() as (_, notary, askers):
        askers.ask("too large", large(MAX_NOTARY_FRAME))
        askers.ask("b")
        assert (await notary.asked()).operation == ReadEpoch()
        assert isinstance(askers.heard["too large"], NotaryRefused)


async def test_one_operation_more_than_may_wait_is_refused_at_once() -> None:
    async with of_notary() as (_, notary, askers):
        for count in range(MAX_WAITING):
            askers.ask(str(count))
        await wait_all_tasks_blocked()
        askers.ask("one more")
        await until(lambda: "one more" in askers.heard)
        assert type(askers.heard["one more"]) is NotaryUnavailable
        first = await notary.asked()
        await notary.say(answer(first.number, 1))
        await until(lambda: len(askers.heard) == 2)
        askers.ask("room again")
        await wait_all_tasks_blocked()
        assert "room again" not in askers.heard


GARBAGE = (b"\xff\xff\xff\xff", (3).to_bytes(4, "big") + b"\xc1\xc1\xc1")
UNGREETED = (encode_frame(answer(1, 1), MAX_NOTARY_FRAME),)


@pytest.mark.parametrize("said", [*GARBAGE, *UNGREETED], ids=["a length too great", "no message", "no greeting"])
async def test_a_notary_that_breaks_the_protocol_is_heard_no_more_and_the_next_one_is_asked(said: bytes) -> None:
    async with of_notary(greets=False) as (client, first, askers):
        askers.ask("a")
        number = (await first.asked()).number
        await first.say_bytes(said)
        assert await first.take(1) == b"", "the channel is closed"
        assert askers.heard == {}
        second = attach(client)
        assert (await second.asked()).number == number
        await second.say(answer(number, 7))
        await until(lambda: askers.heard == {"a": 7})


async def test_an_answer_of_another_kind_than_was_asked_for_counts_as_none() -> None:
    async with of_notary() as (_, notary, askers):
        askers.ask("a")
        await notary.say(answer((await notary.asked()).number, "no number"))
        await until(lambda: "a" in askers.heard)
        assert isinstance(askers.heard["a"], NotarySilent)
        askers.ask("b")
        await notary.say(answer((await notary.asked()).number, 2))
        await until(lambda: askers.heard["b"] == 2 if "b" in askers.heard else False)


async def test_a_cancelled_task_gets_its_answer_first_and_is_cancelled_at_its_next_checkpoint() -> None:
    async with at_work() as (client, nursery):
        notary = attach(client)
        heard: list[object] = []
        scope = trio.CancelScope()

        async def ask() -> None:
            with scope:
                heard.append(await client.ask(ReadEpoch()))
                await trio.lowlevel.checkpoint()
                heard.append("not cancelled")

        nursery.start_soon(ask)
        asked = await notary.asked()
        scope.cancel()
        await wait_all_tasks_blocked()
        assert not scope.cancelled_caught
        await notary.say(answer(asked.number, 5))
        await until(lambda: scope.cancelled_caught)
        assert heard == [5]


async def test_a_task_that_is_cancelled_already_asks_nothing() -> None:
    async with of_notary() as (client, notary, askers):
        with trio.CancelScope() as scope:
            scope.cancel()
            await client.ask(large(10))
        assert scope.cancelled_caught
        askers.ask("b")
        assert (await notary.asked()).operation == ReadEpoch()


async def test_what_has_arrived_can_be_heard_without_waiting() -> None:
    async with at_work() as (client, _):
        notary = attach(client)
        told: list[FrontFacts] = []
        client.on_in_force = told.append
        raised = msgspec.structs.replace(NOTHING, epoch=7)
        notary.say_now(raised)
        client.hear_now()
        assert [message.epoch for message in told] == [0, 7]
        client.hear_now()
        notary.die()
        client.hear_now()
        assert len(told) == 2
        await client.wait_greeted(1)


async def test_before_a_notary_has_spoken_a_front_knows_that_it_has_not(autojump_clock: trio.testing.MockClock) -> None:
    async with at_work() as (client, _):
        with pytest.raises(NotaryUnavailable):
            await client.wait_greeted(5)
        notary = attach(client)
        with pytest.raises(NotaryUnavailable):
            await client.wait_greeted(5)
        await notary.say()
        await client.wait_greeted(5)


async def test_a_deliverer_hears_of_the_newest_evidence_and_of_endpoints_with_news() -> None:
    async with at_work(dialect=DELIVERERS) as (client, _):
        notary = attach(client, greets=False)
        heard: list[Any] = []
        client.on_newest = client.on_woken = heard.append
        await notary.say(Welcome(12.5), Woken(("ops", "audit")))
        await until(lambda: heard == [12.5, ("ops", "audit")])


async def test_a_front_that_is_told_of_deliveries_takes_it_for_a_broken_protocol() -> None:
    async with at_work() as (client, _):
        notary = attach(client)
        with capture_logs() as logs:
            await notary.say(Woken(("ops",)))
            await until(lambda: any("broke the protocol" in str(one.get("reason")) for one in logs))


async def test_at_the_end_of_the_client_every_task_that_waits_hears_of_it() -> None:
    async with at_work() as (client, nursery):
        askers = Askers(client, nursery)
        attach(client)
        askers.ask("a")
        await wait_all_tasks_blocked()
        client.close()
        askers.ask("b")
        await until(lambda: len(askers.heard) == 2)
        assert type(askers.heard["a"]) is NotarySilent
        assert type(askers.heard["b"]) is NotaryUnavailable
