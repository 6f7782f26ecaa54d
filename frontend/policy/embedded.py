"""The embedded policy engine: keeps one policy process busy, and denies whenever it does not answer.

Owns which policy is in force, the questions that are open and their deadlines. A process that dies, hangs or lies is
given up and its successor asked for; what it had not answered is asked again while there is time, except the question
that it was working on. No path from here leads to an allow that the process did not give: what is answered from
memory (memo.py) was said by this very process, over the policy in force, and counts while the process is known to live
(heartbeat.py).
"""

import contextlib
import itertools
import socket
from collections.abc import Callable

import trio
from msgspec import UNSET

from frontend.deadlines import PolicyDeadlines
from frontend.errors import GateError
from frontend.policy.engine import Commit, MemoStatus, PolicyRefused, PolicySources
from frontend.policy.memo import NOT_LOADED, Memo, memo_for, memo_status_of
from frontend.policy.process import PolicyExchange, PolicyProcess, ProcessLost
from frontend.policy.question import BudgetUnread, Decision, Question, parse_decision
from frontend.telemetry.logs import trace_id
from ipc.messages.deciding import PolicyCompiled

MAX_OPEN_QUESTIONS = 1024
"""More than any admission ceiling lets through; beyond it the engine is unavailable."""

_MAX_ATTEMPTS = 2
_UNAVAILABLE = "policy_engine_unavailable"
_TIMEOUT = "policy_engine_timeout"


class EmbeddedPolicy:
    """A PolicyEngine over processes that the supervisor hands over with `attach`."""

    def __init__(
        self, ask_replacement: Callable[[int, str], None], note_remembered: Callable[[], None] | None = None,
        deadlines: PolicyDeadlines = PolicyDeadlines(),
    ) -> None:  # fmt: skip
        """`ask_replacement(pid, reason)` has the supervisor kill that process, if it lives, and attach another.

        `note_remembered` is called for every decision that is answered from memory.
        """
        self._ask_replacement = ask_replacement
        self._note_remembered = note_remembered
        self.deadlines = deadlines
        """For what begins from now on."""
        self._memo: Memo | str = NOT_LOADED
        self._question_ids = itertools.count(1)
        self._load_ids = itertools.count(1)
        self._open: dict[int, PolicyExchange] = {}
        self._active: PolicySources | None = None
        self._attached: tuple[socket.socket, int] | None = None
        self._arrived = trio.Event()
        self._process: PolicyProcess | None = None
        self._is_serving = False
        self._is_up = trio.Event()
        self._watch_wakes = trio.Event()
        self._is_running = False
        self._loading = trio.Lock()

    @property
    def policy_version(self) -> str:
        """Version of the policy in force; empty before the first one."""
        return self._active.policy_version if self._active else ""

    @property
    def is_available(self) -> bool:
        """Whether a process holds the policy in force, and does not keep us waiting for a sign of life."""
        process = self._process
        return self._is_serving and process is not None and process.stalled_for() < self.deadlines.quiet_seconds

    @property
    def memo_status(self) -> MemoStatus:
        """Whether decisions of the policy in force are remembered, and how many are; if not, why."""
        return memo_status_of(self._memo)

    def attach(self, sock: socket.socket, pid: int) -> None:
        """Take over a fresh process, instead of the one before it if there is one."""
        if self._attached is not None:
            self._attached[0].close()
        self._attached = (sock, pid)
        self._arrived.set()
        if self._process is not None:
            self._process.lose("another process took its place")

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Then close the processes, and fail every open question."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch)
                self._is_running = True
                task_status.started()
                while True:
                    await self._arrived.wait()
                    assert self._attached is not None
                    (sock, pid), self._attached, self._arrived = self._attached, None, trio.Event()
                    await self._serve(PolicyProcess(sock, pid, self._note_settled, self.deadlines))
        finally:
            self._is_running = False
            if self._attached is not None:
                self._attached[0].close()
            for asked in list(self._open.values()):
                self._settle(asked, _UNAVAILABLE, "the policy engine stops")

    # ------------------------------------------------------------------ questions

    async def decide(self, question: Question) -> Decision:
        """Ask, and wait at most `deadlines.question_seconds`.

        Raises GateError policy_engine_timeout when the process had the question and did not answer in time, and
        policy_engine_unavailable for everything else that is not a whole decision. Raises BudgetUnread for a question
        without the budget unless the policy in force is known not to read it. While the process is known to live, a
        remembered decision is answered at once, without a checkpoint.
        """
        memo, process = self._memo, self._process
        is_unread = question.calls_remaining is UNSET
        if is_unread and (isinstance(memo, str) or memo.reads_budget):
            raise BudgetUnread
        if isinstance(memo, str):
            return await self._ask(question)
        key = memo.key_of(question)
        decision = memo.get(key)
        # SECURITY: a hanging process decides nothing, even if it answered before.
        if decision is None or process is None or not process.heartbeat.counts():
            # SECURITY: what comes is kept in the memo of the policy that was in force when it was asked: once another
            # one is, that memo is read no more, whichever of the two gave the answer.
            decision = await self._ask(question)
            if is_unread and self._memo is not memo:
                # SECURITY: another policy, which may read the budget, may have answered.
                raise BudgetUnread
            memo.put(key, decision)
        elif self._note_remembered is not None:
            self._note_remembered()
        return decision

    async def require_life(self) -> None:
        """See PolicyEngine."""
        with trio.move_on_after(self.deadlines.question_seconds):
            while self._is_running:
                process = await self._ready_process()
                if await process.proves_life():
                    if self._is_serving:
                        return
                    break  # it holds no policy
        raise GateError(_UNAVAILABLE, cause="the policy process gives no sign of life")

    async def _ask(self, question: Question) -> Decision:
        if not self._is_running:
            raise GateError(_UNAVAILABLE, cause="the policy engine does not run")
        if len(self._open) >= MAX_OPEN_QUESTIONS:
            raise GateError(_UNAVAILABLE, cause=f"{MAX_OPEN_QUESTIONS} questions are open")
        deadline = trio.current_time() + self.deadlines.question_seconds
        document, number = question.as_input(), next(self._question_ids)
        asked = PolicyExchange(number, document, deadline, question.principal, trace_id.get())
        self._open[asked.id] = asked
        self._watch_wakes.set()
        if self._is_serving and self._process is not None and not self._process.is_compiling:
            await self._process.ask(asked)
        await asked.wait()
        if asked.error is not None:
            raise GateError(asked.error[0], cause=asked.error[1])
        assert asked.document is not None
        return parse_decision(asked.document)

    def _note_settled(self, asked: PolicyExchange) -> None:
        self._open.pop(asked.id, None)

    def _settle(self, asked: PolicyExchange, code: str, cause: str) -> None:
        self._open.pop(asked.id, None)
        asked.settle(None, (code, cause))

    async def _watch(self) -> None:
        """Hold every question to its deadline. All have the same time, so the first asked is the first due."""
        while True:
            first = next(iter(self._open.values()), None)
            if first is None:
                self._watch_wakes = trio.Event()
                await self._watch_wakes.wait()
            else:
                await trio.sleep_until(first.deadline)
                if trio.current_time() > first.deadline + self.deadlines.late_seconds:
                    # This process stood still itself: an answer that came in time is read before it counts as missing.
                    await trio.sleep(self.deadlines.late_seconds)
                self._expire(trio.current_time())

    def _expire(self, now: float) -> None:
        seconds = self.deadlines.question_seconds
        for asked in list(self._open.values()):
            if asked.deadline > now:
                break
            if not asked.is_given:
                self._settle(asked, _UNAVAILABLE, "no policy process was ready in time")
                continue
            self._settle(asked, _TIMEOUT, f"no answer within {seconds} s")
            if self._process is not None:
                self._process.withdraw(asked)
            # A process that still answers is busy, not hung: killing it would fail all other questions, too.
            if self._process is not None and self._process.stalled_for() >= self.deadlines.stall_seconds:
                self._process.lose(f"question {asked.id} was not answered within {seconds} s")

    # ------------------------------------------------------------------ processes

    async def _serve(self, process: PolicyProcess) -> None:
        """Bring one process up and use it until it is lost."""
        self._process = process
        try:
            with process.lost:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(process.listen)
                    nursery.start_soon(process.serve_waiting)
                    nursery.start_soon(process.beat)
                    await self._bring_up(process)
        finally:
            self._process, self._is_serving, self._memo = None, False, NOT_LOADED
            if self._is_up.is_set():
                self._is_up = trio.Event()
            self._take_back(process)
            process.close()
        if self._attached is None:
            # Asked for even if the process is dead already: one successor comes, whichever of the two notices first.
            self._ask_replacement(process.pid, process.lost_because or "lost")

    async def _bring_up(self, process: PolicyProcess) -> None:
        sources = self._active
        if sources is not None:
            load_id = f"load-{next(self._load_ids)}"
            seconds = self.deadlines.load_seconds
            with trio.move_on_after(seconds) as scope:
                try:
                    compiled = await process.compile(load_id, sources)
                except ProcessLost:
                    return
                if compiled.error is not None:
                    process.lose(f"it refused the policy in force: {compiled.error}")
                    return
                await self._use(process, compiled)
            if scope.cancelled_caught:
                process.lose(f"it did not compile the policy in force within {seconds} s")
                return
        self._is_up.set()

    async def _use(self, process: PolicyProcess, compiled: PolicyCompiled) -> None:
        with contextlib.suppress(ProcessLost):  # the successor brings it up
            await process.use(compiled.load_id)
            self._is_serving = self._process is process
            # Questions that are asked from here on reach the process behind UsePolicy.
            self._memo = memo_for(compiled) if self._is_serving else NOT_LOADED
        await self._ask_waiting()

    async def _ask_waiting(self) -> None:
        process = self._process
        if self._is_serving and process is not None:
            for asked in list(self._open.values()):
                if not asked.is_given:
                    await process.ask(asked)

    def _take_back(self, process: PolicyProcess) -> None:
        """Have what `process` did not answer asked again.

        It answers in order, so the oldest question is the one it was working on: perhaps the one that killed it.
        """
        reason = f"the policy process was lost: {process.lost_because}"
        for position, asked in enumerate(process.in_flight.values()):
            if asked.is_settled:
                continue
            if position == 0 or asked.attempts >= _MAX_ATTEMPTS:
                self._settle(asked, _UNAVAILABLE, reason)
            else:
                asked.is_given = False
        while (asked := process.take_waiting()) is not None:  # type: ignore[assignment]
            asked.is_given = False

    # ------------------------------------------------------------------ policies

    async def load(self, sources: PolicySources, commit: Commit | None = None) -> None:
        """Compile and probe `sources` beside the policy in force, await `commit`, then swap.

        Raises PolicyRefused, with the policy in force unchanged, when the candidate is broken, crashes the process or
        takes longer than it may; and what `commit` raises. Questions wait for the compilation, within their own
        deadlines, and are answered by the policy in force while `commit` takes its time.
        """
        async with self._loading:
            process, compiled = await self._compiled(sources)
            if commit is not None:
                await self._ask_waiting()
                await commit()
            # SECURITY: from here on the policy before is not in force, and nothing that it decided may be answered.
            self._active, self._memo = sources, NOT_LOADED
            if self._process is process:
                await self._use(process, compiled)
            elif self._process is not None:
                # SECURITY: a successor that came meanwhile holds what was in force before; it must not decide again.
                self._process.lose("it holds the policy before the one in force")

    async def _compiled(self, sources: PolicySources) -> tuple[PolicyProcess, PolicyCompiled]:
        tried: PolicyProcess | None = None
        seconds = self.deadlines.load_seconds if self._active else self.deadlines.first_load_seconds
        with trio.move_on_after(seconds):
            for attempt in range(1, _MAX_ATTEMPTS + 1):
                tried = await self._ready_process()
                load_id = f"load-{next(self._load_ids)}"
                try:
                    compiled = await tried.compile(load_id, sources)
                except ProcessLost as lost:
                    # It may have been killed from outside. A policy that kills its evaluator does so every time.
                    if attempt < _MAX_ATTEMPTS and await self._has_successor(tried):
                        continue
                    compiled = PolicyCompiled(
                        load_id, f"the policy process was lost while it tried this policy: {lost}"
                    )
                if compiled.error is None:
                    return tried, compiled
                await self._ask_waiting()
                raise PolicyRefused(tuple(compiled.error.split("\n")))
        if tried is None:
            raise PolicyRefused((f"no policy process was ready within {seconds} s",))
        tried.lose(f"it did not compile a policy within {seconds} s")
        raise PolicyRefused((f"it did not compile within {seconds} s",))

    async def _has_successor(self, lost: PolicyProcess) -> bool:
        with trio.move_on_after(self.deadlines.successor_seconds):
            await lost.closed.wait()
            await self._ready_process()
            return True
        return False

    async def _ready_process(self) -> PolicyProcess:
        while self._process is None or not self._is_up.is_set():
            await self._is_up.wait()
        return self._process
