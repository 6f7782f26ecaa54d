"""The batching thread, with a store that does as it is told."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from types import TracebackType

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from frontend.stores import batching
from frontend.stores.batching import MAX_LINGER_SECONDS, BatchingThread

DEADLINE = 60.0


class Gone(Exception):
    """The unavailable of these tests."""


class Stage:
    """A store whose units wait for `may_go_on`; it remembers the units that it has performed."""

    def __init__(self) -> None:
        self.units: list[list[str]] = []
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def perform(self, operations: list[str]) -> list[str | Exception]:
        self.has_begun.set()
        assert self.may_go_on.wait(DEADLINE)
        self.units.append(operations)
        if "explode" in operations:
            raise OSError("the disk is gone")
        if "forget" in operations:
            return []
        return [KeyError(name) if name.startswith("bad") else name.upper() for name in operations]

    def hold(self) -> None:
        self.has_begun.clear()
        self.may_go_on.clear()


@asynccontextmanager
async def running(
    stage: Stage, *, turn: AbstractContextManager[object] | None = None, bound: int = 100,
    on_idle: Callable[[], object] = lambda: None, on_close: Callable[[], object] = lambda: None,
    pause: Callable[[float], object] | None = None, is_company: Callable[[str], bool] = lambda _: True,
) -> AsyncIterator[BatchingThread[str, str]]:  # fmt: skip
    thread: BatchingThread[str, str] = BatchingThread(
        "stage", stage.perform, unavailable=Gone, turn=turn, bound=bound, wait_seconds=DEADLINE,
        on_idle=on_idle, on_close=on_close, pause=pause, is_company=is_company,
    )  # fmt: skip
    try:
        yield thread
    finally:
        stage.may_go_on.set()
        assert await thread.close(seconds=DEADLINE)


async def begun(stage: Stage) -> None:
    """Wait until the thread is inside a unit."""
    assert await trio.to_thread.run_sync(stage.has_begun.wait, DEADLINE)


async def test_an_operation_gets_its_own_result() -> None:
    async with running(Stage()) as thread:
        assert await thread.submit("a") == "A"


async def test_operations_that_wait_at_the_same_time_share_a_unit_in_order() -> None:
    stage = Stage()
    results = []

    async def ask(name: str) -> None:
        results.append(await thread.submit(name))

    async with running(stage) as thread:
        stage.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "first")
            await begun(stage)
            for number in range(40):
                await wait_all_tasks_blocked()
                nursery.start_soon(ask, f"n{number}")
            await wait_all_tasks_blocked()
            stage.may_go_on.set()
    assert stage.units == [["first"], [f"n{number}" for number in range(40)]]
    assert sorted(results) == sorted(["FIRST", *(f"N{number}" for number in range(40))])


async def test_a_unit_waits_for_company_only_where_there_usually_is_some() -> None:
    stage, pauses = Stage(), list[float]()

    async def together(count: int) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(thread.submit, f"n{number}")

    async with running(stage, pause=pauses.append) as thread:
        for _ in range(20):
            await thread.submit("alone")
        assert pauses == []
        for _ in range(10):
            await together(40)
        assert 0 < max(pauses) <= MAX_LINGER_SECONDS
        pauses.clear()
        for _ in range(60):
            await thread.submit("alone again")
        assert 0 < len(pauses) < 60
        assert pauses == sorted(pauses, reverse=True)


async def test_nobody_waits_for_what_is_no_company() -> None:
    stage, pauses = Stage(), list[float]()

    async def together(*names: str) -> None:
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(thread.submit, name)

    async with running(stage, pause=pauses.append, is_company=lambda op: op.startswith("call")) as thread:
        for _ in range(10):
            await together("call", *(f"mail{number}" for number in range(40)))
        assert pauses == []
        for _ in range(10):
            await together(*(f"call{number}" for number in range(40)))
        usual = pauses[-1]
        assert usual > 0
        for _ in range(60):
            await thread.submit("mail")
        assert set(pauses[-60:]) == {usual}, "and what is usual among calls stays so"


async def test_what_is_no_company_goes_along_with_what_comes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_LINGER_SECONDS", DEADLINE)
    stage = Stage()
    async with (
        running(stage, pause=lambda _: None, is_company=lambda op: op == "call") as thread,
        trio.open_nursery() as nursery,
    ):
        for name in ("mail1", "mail2"):
            nursery.start_soon(thread.submit, name)
        await wait_all_tasks_blocked()
        nursery.start_soon(thread.submit, "call")
    assert [set(unit) for unit in stage.units] == [{"mail1", "mail2", "call"}]


async def test_what_is_no_company_is_performed_where_none_comes_and_at_the_end_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(Stage(), is_company=lambda _: False) as thread:
        assert await thread.submit("mail") == "MAIL"
    monkeypatch.setattr(batching, "MAX_LINGER_SECONDS", 10 * DEADLINE)
    stage = Stage()
    async with running(stage, is_company=lambda _: False) as thread, trio.open_nursery() as nursery:
        nursery.start_soon(thread.submit, "mail")
        await wait_all_tasks_blocked()
        assert await thread.close(seconds=DEADLINE)
    assert stage.units == [["mail"]]


async def test_an_exception_of_one_operation_reaches_nobody_else() -> None:
    stage = Stage()
    seen: dict[str, object] = {}

    async def ask(name: str) -> None:
        try:
            seen[name] = await thread.submit(name)
        except KeyError as error:
            seen[name] = error.args[0]

    async with running(stage) as thread:
        stage.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "hold")
            await begun(stage)
            for name in ("good", "bad1", "bad2"):
                nursery.start_soon(ask, name)
            await wait_all_tasks_blocked()
            stage.may_go_on.set()
    assert seen == {"hold": "HOLD", "good": "GOOD", "bad1": "bad1", "bad2": "bad2"}
    assert len(stage.units) == 2


@pytest.mark.parametrize("name", ["explode", "forget"])
async def test_a_unit_that_fails_fails_all_its_operations_and_the_thread_goes_on(name: str) -> None:
    stage = Stage()
    failures: list[Exception] = []

    async def ask(what: str) -> None:
        with pytest.raises(Gone) as caught:
            await thread.submit(what)
        failures.append(caught.value)

    async with running(stage) as thread:
        stage.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(thread.submit, "before")
            await begun(stage)
            for what in ("a", name, "b"):
                nursery.start_soon(ask, what)
            await wait_all_tasks_blocked()
            stage.may_go_on.set()
        assert await thread.submit("after") == "AFTER"
    assert len({id(failure) for failure in failures}) == 3
    assert all(failure.__cause__ is failures[0].__cause__ is not None for failure in failures)


async def test_a_full_queue_refuses_at_once() -> None:
    stage = Stage()
    async with running(stage, bound=3) as thread:
        stage.hold()
        async with trio.open_nursery() as nursery:
            for name in ("a", "b", "c"):
                nursery.start_soon(thread.submit, name)
            await wait_all_tasks_blocked()
            with pytest.raises(Gone, match="3 operations are waiting already"):
                await thread.submit("d")
            stage.may_go_on.set()
        assert await thread.submit("e") == "E"


async def test_a_waiter_gives_up_at_its_deadline_and_what_it_queued_is_not_done() -> None:
    stage = Stage()
    async with running(stage) as thread:
        stage.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(thread.submit, "first")
            await begun(stage)
            with pytest.raises(Gone, match=r"did not answer within 0\.05 s"):
                await thread.submit("late", wait_seconds=0.05)
            stage.may_go_on.set()
        assert await thread.submit("next") == "NEXT"
    assert stage.units == [["first"], ["next"]]


async def test_a_caller_that_is_cancelled_already_queues_nothing() -> None:
    stage = Stage()
    async with running(stage) as thread:
        with trio.CancelScope() as scope:
            scope.cancel()
            await thread.submit("a")
        assert scope.cancelled_caught
    assert stage.units == []


async def test_cancellation_while_waiting_is_delivered_after_the_result() -> None:
    stage = Stage()
    results: list[str] = []
    async with running(stage) as thread:
        stage.hold()

        async def cancelled() -> None:
            with scope:
                results.append(await thread.submit("mine"))
                await trio.lowlevel.checkpoint()
                results.append("went on")

        scope = trio.CancelScope()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancelled)
            await begun(stage)
            nursery.start_soon(thread.submit, "other")
            await wait_all_tasks_blocked()
            scope.cancel()
            await wait_all_tasks_blocked()
            assert results == []
            stage.may_go_on.set()
    assert results == ["MINE"]
    assert stage.units == [["mine"], ["other"]]


async def test_close_performs_what_is_queued_and_takes_no_more() -> None:
    stage = Stage()
    results = []

    async def ask(name: str) -> None:
        results.append(await thread.submit(name))

    async with running(stage) as thread:
        stage.hold()
        async with trio.open_nursery() as nursery:
            for name in ("a", "b", "c"):
                nursery.start_soon(ask, name)
            await begun(stage)
            await wait_all_tasks_blocked()
            nursery.start_soon(thread.close)
            await wait_all_tasks_blocked()
            with pytest.raises(Gone, match="closed"):
                await thread.submit("d")
            stage.may_go_on.set()
        assert sorted(results) == ["A", "B", "C"]
        assert "stage" not in {other.name for other in threading.enumerate()}


async def test_close_leaves_a_hanging_store_to_itself_after_its_deadline() -> None:
    stage = Stage()
    async with running(stage) as thread:
        stage.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(thread.submit, "a")
            await begun(stage)
            assert await thread.close(seconds=0.05) is False
            stage.may_go_on.set()


async def test_idle_work_is_done_once_after_a_unit_and_last_work_at_the_end() -> None:
    idle = threading.Semaphore(0)
    last = []
    async with running(Stage(), on_idle=idle.release, on_close=lambda: last.append("closed")) as thread:
        await thread.submit("a")
        assert await trio.to_thread.run_sync(lambda: idle.acquire(timeout=DEADLINE))
        assert not idle.acquire(blocking=False)
        assert last == []
    assert last == ["closed"]


class Gate:
    """A turn that is had when `is_open`."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.is_wanted = threading.Event()
        self.is_held = False

    def __enter__(self) -> None:
        self.is_wanted.set()
        if not self.is_open.wait(DEADLINE):
            raise TimeoutError("nobody opened the gate")
        self.is_held = True

    def __exit__(self, _k: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        self.is_held = False


async def test_who_queues_while_the_thread_waits_for_its_turn_comes_along() -> None:
    gate, stage = Gate(), Stage()
    held = []
    perform = stage.perform

    def watched(operations: list[str]) -> list[str | Exception]:
        held.append(gate.is_held)
        return perform(operations)

    stage.perform = watched  # type: ignore[method-assign]
    async with running(stage, turn=gate) as thread, trio.open_nursery() as nursery:
        nursery.start_soon(thread.submit, "a")
        assert await trio.to_thread.run_sync(gate.is_wanted.wait, DEADLINE)
        with pytest.raises(Gone):
            await thread.submit("impatient", wait_seconds=0.02)
        nursery.start_soon(thread.submit, "b")
        await wait_all_tasks_blocked()
        gate.is_open.set()
    assert stage.units == [["a", "b"]]
    assert held == [True]


async def test_a_turn_that_cannot_be_had_fails_the_operation() -> None:
    class Broken(Gate):
        def __enter__(self) -> None:
            raise OSError("no such folder")

    async with running(Stage(), turn=Broken()) as thread:
        with pytest.raises(Gone, match="no such folder"):
            await thread.submit("a")
