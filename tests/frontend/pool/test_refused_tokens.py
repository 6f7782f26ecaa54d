"""Workers that ask for another token: whose question is answered, and which one costs the worker."""

import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
import trio.testing

from frontend.pool.channel import WorkerChannel, WorkerLost
from ipc.channel.blocking import BlockingChannel
from ipc.channel.framing import encode_frame
from ipc.limits import MAX_CALL_FRAME, MAX_RESULT_FRAME
from ipc.messages.calling import Call, FrontToWorker, Secrets, TokenRefused, WorkerReady
from ipc.messages.control import AttachWorker
from ipc.messages.message import Message
from ipc.plan import SecretUse
from ipc.protocols.worker import FRONT_TO_WORKER
from tests.support.echo_worker import result_of
from tests.support.worker_desk import DEADLINE, Desk, Pooling, call, until

Renewed = Callable[[str], Awaitable[Mapping[str, str]]]
TOKEN = (SecretUse("token"),)
SHARED: dict[str, Any] = {"isolation": "shared", "profile": "http"}


@dataclass
class Asking:
    """The task of a call, as its front has one: it gives another token once it may."""

    may_answer: trio.Event = field(default_factory=trio.Event)
    asked: list[str] = field(default_factory=list)

    async def values(self, name: str) -> Mapping[str, str]:
        self.asked.append(name)
        await self.may_answer.wait()
        return {name: "another"}


async def given(desk: Desk, worker: WorkerChannel, one: Call, renewed: Renewed) -> None:
    await worker.give(one)
    worker.give_secrets(one.call_id, {"token": "first"})
    desk.pools.renew(worker, one.call_id, ("token",), renewed)


async def leased(stack: AsyncExitStack, desk: Desk) -> WorkerChannel:
    return await stack.enter_async_context(desk.pools.lease("http", "shared", 60, is_patient=True, kind="post"))


async def test_calls_beside_each_other_get_another_token_each_while_one_waits_for_its_own(pooling: Pooling) -> None:
    async with pooling(1, profile="http", max=9) as desk, AsyncExitStack() as stack:
        calls = [call("renews", secrets=TOKEN, **SHARED) for _ in range(3)]
        tasks = [Asking() for _ in calls]
        worker = await leased(stack, desk)
        for _ in calls[1:]:
            assert await leased(stack, desk) is worker
        for one, task in zip(calls, tasks, strict=True):
            await given(desk, worker, one, task.values)
            desk.notary.word(worker.worker_id, one)
        await until(lambda: all(task.asked == ["token"] for task in tasks))
        for one, task in reversed(list(zip(calls, tasks, strict=True))):
            task.may_answer.set()
            await desk.notary.heard(worker.worker_id)
            with trio.fail_after(DEADLINE):
                assert (await worker.result(one.call_id)).output == '"another"'
        assert desk.kills == []


async def test_a_worker_whose_call_has_asked_serves_other_calls_afterwards(pooling: Pooling) -> None:
    async with pooling(1, profile="http", max=9) as desk:
        for _ in range(3):
            async with desk.pools.lease("http", "pooled", 60) as worker:
                one, task = call("renews", secrets=TOKEN), Asking()
                task.may_answer.set()
                await given(desk, worker, one, task.values)
                assert (await desk.finish(worker, one)).output == '"another"'
            async with desk.pools.lease("http", "pooled", 60) as worker:
                assert (await desk.run(worker, call())).outcome == "success"
        assert (desk.kills, desk.idle("http")) == ([], 1)


@dataclass
class Played:
    """A worker that a test plays, with one call that has a token and one that has none."""

    desk: Desk
    worker: WorkerChannel
    sock: socket.socket
    one: Call
    other: Call
    task: Asking

    def say(self, *messages: Message) -> None:
        self.sock.sendall(b"".join(encode_frame(message, MAX_RESULT_FRAME) for message in messages))


@asynccontextmanager
async def playing(pooling: Pooling) -> AsyncIterator[Played]:
    ours, theirs = socket.socketpair()
    async with pooling(profile="http", max=9) as desk, AsyncExitStack() as stack:
        stack.enter_context(theirs)
        desk.pools.attach(AttachWorker("http-9", "http", os.getpid(), 0), ours.detach())
        theirs.sendall(encode_frame(WorkerReady("http-9", os.getpid(), "http"), MAX_RESULT_FRAME))
        worker = await leased(stack, desk)
        assert await leased(stack, desk) is worker
        played = Played(desk, worker, theirs, call(**SHARED), call(**SHARED), Asking())
        await given(desk, worker, played.one, played.task.values)
        await worker.give(played.other)
        yield played


Says = Callable[[Played], tuple[Message, ...]]
HOSTILE: dict[str, Says] = {
    "a secret that it does not have": lambda at: (TokenRefused(at.one.call_id, "another"),),
    "a call without tokens": lambda at: (TokenRefused(at.other.call_id, "token"),),
    "no call": lambda _: (TokenRefused("call-of-another", "token"),),
    "twice": lambda at: (TokenRefused(at.one.call_id, "token"),) * 2,
    "after its result": lambda at: (result_of(at.one), TokenRefused(at.one.call_id, "token")),
    "after its first question and result": lambda at: (
        TokenRefused(at.one.call_id, "token"), result_of(at.one), TokenRefused(at.one.call_id, "token"),
    ),
    "a greeting": lambda _: (WorkerReady("http-9", os.getpid(), "http"),),
}  # fmt: skip


@pytest.mark.parametrize("says", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_question_that_cannot_be_ends_its_worker_and_gets_no_token(pooling: Pooling, says: Says) -> None:
    async with playing(pooling) as at:
        at.say(*says(at))
        if says is HOSTILE["after its result"]:  # its own task has nothing more to read
            with pytest.raises(WorkerLost, match="protocol broken"):
                await at.worker.result(at.other.call_id)
        else:
            await until(lambda: at.desk.kills == [("http-9", "protocol broken")])
        at.task.may_answer.set()
        await trio.testing.wait_all_tasks_blocked()
        assert at.worker.lost == "protocol broken"
        assert heard(at) == [Call, Secrets, Call]


async def test_a_question_cut_off_by_the_end_of_the_worker_is_no_broken_protocol(pooling: Pooling) -> None:
    async with playing(pooling) as at:
        at.sock.sendall(encode_frame(TokenRefused(at.one.call_id, "token"), MAX_RESULT_FRAME)[:-3])
        at.sock.shutdown(socket.SHUT_WR)
        await trio.testing.wait_all_tasks_blocked()
        assert (at.desk.kills, at.task.asked) == ([], [])


@pytest.mark.parametrize("is_given_up", [True, False])
async def test_a_call_that_has_ended_or_is_given_up_meanwhile_gets_no_token(
    pooling: Pooling, is_given_up: bool
) -> None:
    async with playing(pooling) as at:
        at.say(TokenRefused(at.one.call_id, "token"))
        await until(lambda: at.task.asked == ["token"])
        if is_given_up:
            at.worker.gives_up(at.one.call_id)
        else:
            at.say(result_of(at.one))
            assert (await at.worker.result(at.one.call_id)).outcome == "success"
        at.say(result_of(at.other))
        assert (await at.worker.result(at.other.call_id)).outcome == "success"
        at.task.may_answer.set()
        await trio.testing.wait_all_tasks_blocked()
        assert heard(at) == [Call, Secrets, Call]
        assert at.desk.kills == []


def heard(at: Played) -> list[type[Message]]:
    at.sock.setblocking(False)
    channel: BlockingChannel[FrontToWorker] = BlockingChannel(
        at.sock, FrontToWorker, table=FRONT_TO_WORKER, cap_in=MAX_CALL_FRAME, cap_out=MAX_RESULT_FRAME
    )
    kinds: list[type[Message]] = []
    while True:
        try:
            kinds.append(type(channel.receive()))
        except BlockingIOError:
            return kinds
