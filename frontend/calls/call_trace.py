"""When the steps of one exported call began and ended, in monotonic seconds, as far as they are known."""

import time
from dataclasses import dataclass

from ipc.messages.calling import HostCallTime, Observation, Result
from ipc.messages.exporting import MOST_HOST_CALLS, NOTARY_CLOSE, NOTARY_OPEN, POLICY, WORKER, HostCallSpan, TimedStep

TimedWrite = tuple[str, float, float]
"""A step, its begin and its end."""
_OPERATIONS = {
    "http": frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}),
    "fs": frozenset({"read", "write", "append", "list", "stat", "delete"}),
}
_ERRORS = frozenset({
    "invalid-input", "denied", "not-found", "conflict", "too-large", "timeout", "unavailable", "internal"
})  # fmt: skip
"""`error-kind` of the WIT."""
_OTHER = "_OTHER"
"""Any other text: a provider or a worker chooses it."""


@dataclass(slots=True)
class CallTrace:
    """Filled by the steps themselves."""

    traceparent: str = ""
    """The caller's own trace, in the form of W3C Trace Context; empty without one."""
    policy: tuple[float, float] | None = None
    """From the first question to the last answer."""
    notary: tuple[float, float] | None = None
    """From the question that opens the call to the answer with its evidence."""
    writes_us: tuple[int, int] | None = None
    """Microseconds that the notary took for intent and receipt."""
    result: Result | None = None
    """The worker's."""
    writes: tuple[TimedWrite, ...] = ()
    """Questions to the notary about a call that does not run, or not yet."""

    def wrote(self, step: str, asked: float) -> None:
        """The notary has answered a question of these, which was `asked` at that time."""
        self.writes = (*self.writes, (step, asked, time.monotonic()))

    def steps(self, began: float) -> tuple[TimedStep, ...]:
        """The steps in order, in microseconds from the begin of the call.

        The intent is written at the begin of the notary's part and the receipt at its end; before the receipt the
        worker ran. The rest, between intent and worker, are ways and waits.
        """
        steps = [] if self.policy is None else [_step(POLICY, began, *self.policy)]
        steps += [_step(name, began, asked, answered) for name, asked, answered in self.writes]
        if self.notary is None or self.writes_us is None:
            return tuple(steps)
        (asked, answered), (working, closing) = self.notary, self._worker_time()
        steps.append(_step(NOTARY_OPEN, began, asked, min(working, asked + self.writes_us[0] / 1e6)))
        if self.result is not None:
            steps.append(_step(WORKER, began, working, closing))
        return (*steps, _step(NOTARY_CLOSE, began, closing, answered))

    def host_calls(self, began: float) -> tuple[HostCallSpan, ...]:
        """The host calls in order, in microseconds from the begin of the call. SECURITY: a worker says when they were:
        none stands outside the worker's own time. A target repeats the request: its operation alone is
        taken, if it is a known one."""
        if self.result is None or self.notary is None:
            return ()
        begins, ends = (_micros(at - began) for at in self._worker_time())
        seen = zip(self.result.observations[:MOST_HOST_CALLS], self.result.host_times, strict=False)
        return tuple(_host_call(one, at, begins, ends) for one, at in seen if one.kind in _OPERATIONS)

    def _worker_time(self) -> tuple[float, float]:
        """From the begin of the worker's run to its result; without a result the end alone."""
        assert self.notary is not None, "asked of a call that the notary has opened"
        asked, answered = self.notary
        ends = max(asked, answered - (self.writes_us or (0, 0))[1] / 1e6)
        return (ends if self.result is None else max(asked, ends - self.result.duration_us / 1e6)), ends


def _step(name: str, began: float, start: float, end: float) -> TimedStep:
    return TimedStep(name, _micros(start - began), _micros(end - began))


def _micros(seconds: float) -> int:
    return int(seconds * 1e6)


def _host_call(seen: Observation, at: HostCallTime, begins: int, ends: int) -> HostCallSpan:
    starts, operation = begins + at.after_us, seen.target.partition(" ")[0]
    problem = (seen.error or "").partition(":")[0]
    return HostCallSpan(
        seen.kind, operation if operation in _OPERATIONS[seen.kind] else _OTHER, min(starts, ends),
        min(starts + at.took_us, ends), _status(seen), problem if problem in _ERRORS else _OTHER * bool(problem),
    )  # fmt: skip


def _status(seen: Observation) -> int:
    return seen.status if seen.status is not None and 100 <= seen.status < 600 else 0
