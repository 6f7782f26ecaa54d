"""Fronts in a thread of their own. A history of Hypothesis is no coroutine and speaks to them from outside."""

import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

import trio

from tests.support.front_core import Core

Answer = TypeVar("Answer")
Opener = Callable[[], AbstractAsyncContextManager[Sequence[Core]]]


class Town:
    """The fronts, and how a history speaks to them."""

    def __init__(self, cores: Sequence[Core], token: trio.lowlevel.TrioToken) -> None:
        self.cores = cores
        self._token = token

    @property
    def core(self) -> Core:
        """The first front."""
        return self.cores[0]

    def do(self, work: Callable[..., Awaitable[Answer]], *arguments: Any) -> Answer:
        """The result of an async function, run where the fronts run. No rate limit applies here."""
        for core in self.cores:
            core.services.rates = type(core.services.rates)()
        return trio.from_thread.run(work, *arguments, trio_token=self._token)


@contextmanager
def town(opener: Opener) -> Iterator[Town]:
    """Open the fronts in a thread, with clocks that move when the history moves them."""
    opened: SimpleQueue[Town | BaseException] = SimpleQueue()
    closing: list[Callable[[], None]] = []

    async def live() -> None:
        async with opener() as cores:
            for core in cores:
                core.clock.stop()
            done = trio.Event()
            token = trio.lowlevel.current_trio_token()
            closing.append(lambda: token.run_sync_soon(done.set))
            opened.put(Town(cores, token))
            await done.wait()

    def run() -> None:
        try:
            trio.run(live)
        except BaseException as error:
            opened.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    outcome = opened.get(timeout=120)
    try:
        if isinstance(outcome, BaseException):
            raise outcome
        yield outcome
    finally:
        for close in closing:
            close()
        thread.join(120)
