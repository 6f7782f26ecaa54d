"""The threads of an http worker that run shared calls: as many at once as one worker may have, all of one action.

Guarantees that each call has a runner of its own, and with it linkers and a resolver; that nothing of a call stays in
its thread after it has ended; and that no thread speaks to a peer: results, and questions for another token, wait for
the worker's loop, which `fileno` wakes. Never runs anything that the loop did not begin.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import NamedTuple

from ipc.limits import MAX_AHEAD, MAX_SHARED_MEMORY_MB
from ipc.messages.attesting import Permit
from ipc.messages.calling import Call, Result, TokenRefused
from ipc.plan import Plan
from workers.runtime.call import Runner
from workers.sandbox.profiles import YIELDING

SHARED = "shared"
"""`Plan.isolation` of a call that runs beside others of its action."""
STUCK_SECONDS = 5.0
"""A call that goes on for so long beyond its deadline does not end by itself. A front waits for less."""

_STACK_BYTES = 2 * 1024 * 1024
"""Stack of a thread: a megabyte is the guest's (`max_wasm_stack`). Pages that are never touched take no memory."""
_START_SECONDS = 60.0


class EndedCall(NamedTuple):
    """A call that has ended: with a result, or with an error of its runner, which no call may cause."""

    call: Call
    ended: Result | BaseException
    is_stuck: bool
    """A name is still looked up on its account."""


class _SharedCall(NamedTuple):
    call: Call
    until: float
    """time.monotonic() of its end, unless it is stuck."""
    thread: "_CrewThread"


class _CrewThread:
    """One thread and its runner. `done` gets each result, or the error that no call may cause."""

    def __init__(
        self, runner: Runner, done: "Callable[[str, Result | BaseException], None]",
        renew: Callable[[str, str, float], str | None],
    ) -> None:  # fmt: skip
        self.runner = runner
        self._done = done
        self._renew = renew
        self._work: SimpleQueue[tuple[Call, Permit, Mapping[str, str]]] = SimpleQueue()
        self.is_up = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._live, name="call", daemon=True).start()

    def give(self, call: Call, word: Permit, secrets: Mapping[str, str]) -> None:
        self._work.put((call, word, secrets))

    def _live(self) -> None:
        os.nice(YIELDING)  # the niceness of a thread is its own
        self.is_up.set()
        while True:
            # SECURITY: no name here holds on to plan or secrets while the thread waits for the next call.
            self._run(*self._work.get())

    def _run(self, call: Call, word: Permit, secrets: Mapping[str, str]) -> None:
        try:
            self._done(call.call_id, self.runner.run(call, word, secrets, partial(self._renew, call.call_id)))
        except BaseException as error:
            self._done(call.call_id, error)


class Crew:
    """The crew of one worker. The worker's loop calls it; `_run`, `_renewed` and `_note` happen in other threads."""

    def __init__(self, make_runner: Callable[[], Runner], *, stuck_seconds: float = STUCK_SECONDS) -> None:
        self._stuck_seconds = stuck_seconds
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK | os.EFD_SEMAPHORE)
        """Counts what is in `_ended`: it stays readable until all of that is taken."""
        self._ended: SimpleQueue[tuple[str, Result | TokenRefused | BaseException]] = SimpleQueue()
        self._renewing: dict[str, SimpleQueue[str | None]] = {}
        """By call, where it waits for another token."""
        self._idle = [_CrewThread(make_runner(), self._note, self._renewed) for _ in range(MAX_AHEAD)]
        """The thread that ended last is the last: it is the warmest, and begins next. The first is one that
        still looks up a name: another call would wait for that."""
        self._running: dict[str, _SharedCall] = {}

    def start(self) -> None:
        """Start the threads, which never end before the process does. Raises RuntimeError."""
        previous = threading.stack_size(_STACK_BYTES)
        try:
            for thread in self._idle:
                thread.start()
        finally:
            threading.stack_size(previous)
        for thread in self._idle:
            if not thread.is_up.wait(_START_SECONDS):
                raise RuntimeError("a thread did not start")

    def fileno(self) -> int:
        """Readable once a call has ended, or asks for another token."""
        return self._wake

    @property
    def is_busy(self) -> bool:
        """True while a call runs, or has ended and was not taken."""
        return bool(self._running)

    def is_running(self, call_id: str) -> bool:
        """True for a call that was begun and not taken since."""
        return call_id in self._running

    def refusal(self, plan: Plan) -> str | None:
        """Why this plan may not run now; None: it may.

        SECURITY: a second look. The front gives a worker nothing that would be refused here.
        """
        if plan.isolation != SHARED:
            return "other calls run in this worker" if self._running else None
        if plan.limits.memory_mb > MAX_SHARED_MEMORY_MB:
            return f"the plan asks for more memory than a shared call has ({MAX_SHARED_MEMORY_MB} MB)"
        if not self._idle:
            return "as many calls run as one worker may have"
        if any(running.call.plan.action_id != plan.action_id for running in self._running.values()):
            return "calls of another action run in this worker"
        return None

    def begin(self, call: Call, word: Permit, secrets: Mapping[str, str]) -> None:
        """Run a call whose plan is not refused."""
        thread = self._idle.pop()
        seconds = min(call.deadline_seconds, call.plan.limits.timeout_seconds)
        self._running[call.call_id] = _SharedCall(call, time.monotonic() + seconds, thread)
        thread.give(call, word, secrets)

    @property
    def is_renewing(self) -> bool:
        """True while a call waits for another token."""
        return bool(self._renewing)

    def give_token(self, call_id: str, value: str | None) -> None:
        """Let a call go on that waits for another token; it may wait no longer."""
        if (waiting := self._renewing.get(call_id)) is not None:
            waiting.put(value)

    def take(self) -> EndedCall | TokenRefused | None:
        """The next call that has ended or asks. One at a time: a loop that fails at one has not taken those behind."""
        with suppress(BlockingIOError, Empty):
            os.eventfd_read(self._wake)
            call_id, ended = self._ended.get_nowait()
            if isinstance(ended, TokenRefused):
                return ended
            call, _, thread = self._running.pop(call_id)
            outside = thread.runner.outside
            is_stuck = outside is not None and outside.resolver.is_stuck
            self._idle.insert(0 if is_stuck else len(self._idle), thread)
            return EndedCall(call, ended, is_stuck)
        return None

    def patience(self) -> float | None:
        """Seconds until a call that runs is stuck; None: none runs."""
        if not self._running:
            return None
        first = min(running.until for running in self._running.values())
        return max(0.0, first + self._stuck_seconds - time.monotonic())

    def stuck(self) -> list[Call]:
        """Calls that do not end by themselves."""
        late = time.monotonic() - self._stuck_seconds
        return [running.call for running in self._running.values() if running.until <= late]

    def _renewed(self, call_id: str, secret: str, seconds: float) -> str | None:
        """In the call's thread: have the loop ask for another token, and wait for it."""
        waiting = self._renewing[call_id] = SimpleQueue[str | None]()
        try:
            self._note(call_id, TokenRefused(call_id, secret))
            with suppress(Empty):
                return waiting.get(timeout=seconds)
            return None
        finally:
            del self._renewing[call_id]

    def _note(self, call_id: str, ended: Result | TokenRefused | BaseException) -> None:
        self._ended.put((call_id, ended))
        os.eventfd_write(self._wake, 1)
