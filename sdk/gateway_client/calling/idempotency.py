"""One execute under its `Idempotency-Key`: when it is sent again, and which answer is its outcome. No I/O.

Guarantees that a call which may have run is sent again only if its lease is of a gateway that knows keys, and only to a
gateway that knows keys now, and so runs at most once; and that a refusal of a repeat never hides that an earlier
attempt may have run.
"""

import secrets
from dataclasses import dataclass, replace
from typing import Protocol

from gateway_client.calling.core import Repeat
from gateway_client.calling.leases import RENEW_SECONDS, Lease
from gateway_client.errors import (
    GatewayError,
    OutcomeUnknown,
    ProtocolViolation,
    RateLimited,
    Unavailable,
    Unreachable,
)
from gateway_client.wire.exchange import Headers, ReceivedAnswer, UnprovenCall
from gateway_client.wire.flows import Clock, Flow, Pause

HEADER = "Idempotency-Key"
MAX_KEY_CHARACTERS = 255
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 4.0
"""Seconds between two attempts; each pause is twice the one before."""
PROBE = UnprovenCall("GET", "/v1/calls", "limit=1")
"""A gateway that lists calls knows keys; an older one has no such endpoint."""
_OUTCOMES = frozenset({"already_executed", "approval_expired", "idempotency_key_reused", "outcome_unknown"})
_LOST = frozenset({"gateway_broke_off", "gateway_timeout"})
"""An edge answers with these where the gateway's answer to a call did not come."""


class ProvenCalls(Protocol):
    """Sends a call under a lease that lives for so many seconds more."""

    def __call__(
        self, call: UnprovenCall, deadline: float, repeat: Repeat, seconds: float, /
    ) -> Flow[tuple[ReceivedAnswer, Lease]]:
        """The answer, and the lease that was used."""


@dataclass(slots=True)
class KeyedExecute:
    """An execute under its key. `key` is None once it goes without one. Times as in AgentCore.execute."""

    call: UnprovenCall
    key: str | None
    is_own_key: bool
    end: float
    attempt_seconds: float
    lease_seconds: float

    def drop_key(self) -> None:
        """Send it without a key from now on."""
        headers = tuple(one for one in self.call.headers if one[0] != HEADER)
        self.key, self.call = None, replace(self.call, headers=headers)


def new_key() -> str:
    """A key that no other call has."""
    return secrets.token_urlsafe(18)


def key_header(key: str) -> Headers:
    """The header of a key, a quoted string. Raises ValueError for a key that it can't hold."""
    if not 1 <= len(key) <= MAX_KEY_CHARACTERS or not all(" " <= one <= "~" for one in key):
        raise ValueError(f"an idempotency key is 1 to {MAX_KEY_CHARACTERS} printable ASCII characters")
    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    return ((HEADER, f'"{quoted}"'),)


class Repeater:
    """Sends the executes of one client until their outcome is known or their time is over."""

    def __init__(self, proven: ProvenCalls, clock: Clock) -> None:
        self._proven = proven
        self._clock = clock

    def execute(self, execute: KeyedExecute) -> Flow[tuple[ReceivedAnswer, Lease]]:
        """The answer that is the outcome of the call, or refuses it, and the lease that was used.

        Raises Unreachable, ProtocolViolation or OutcomeUnknown where the call may have run.
        """
        unknown: GatewayError | None = None  # an attempt that may have run
        pause, is_asked = FIRST_PAUSE, False
        while True:
            try:
                if unknown is not None and not is_asked:
                    yield from self._ask_for_keys(execute)
                deadline = min(execute.end, self._clock.monotonic() + execute.attempt_seconds)
                answer, lease = yield from self._proven(
                    execute.call, deadline, Repeat.BEFORE_DISPATCH, execute.lease_seconds
                )
                problem = _problem(answer, has_begun=unknown is not None)
                if problem is None:
                    return answer, lease
                problem.knows_keys = lease.knows_keys
            except GatewayError as error:
                problem = error
            if problem.code == "too_many_idempotency_keys" and unknown is None and execute.is_own_key:
                execute.drop_key()
                continue
            is_asked = isinstance(problem, OutcomeUnknown)  # it has just told that it knows them
            if unknown is None or isinstance(problem, OutcomeUnknown):
                if not _may_be_asked_for(problem, execute):
                    raise problem
                unknown = problem
            elif not _may_pass(problem):
                raise _refused(unknown, problem)
            wait = max(problem.retry_after or 0.0, pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            if wait >= execute.end - self._clock.monotonic():
                raise _refused(unknown, problem)
            yield Pause(wait)

    def _ask_for_keys(self, execute: KeyedExecute) -> Flow[None]:
        """Each time anew: another gateway may have taken its place. Raises NotFound for a gateway that knows no keys,
        GatewayError where it can't be asked now."""
        answer, _ = yield from self._proven(PROBE, execute.end, Repeat.READ, RENEW_SECONDS)
        answer.expect(200)


def _problem(answer: ReceivedAnswer, *, has_begun: bool) -> GatewayError | None:
    """The error of an answer that is not the last one; None for an outcome and for the refusal of a first attempt."""
    if answer.status < 400 or answer.headers.get("idempotent-replayed") == "true":
        return None
    error = answer.error()
    if isinstance(error, ProtocolViolation):  # from something between the client and the gateway
        return error if has_begun or answer.status >= 500 else None
    if error.code in {"call_in_progress", "too_many_idempotency_keys", *_LOST}:
        return error
    is_outcome = error.code in _OUTCOMES or (answer.status >= 500 and answer.status != 503)
    return error if has_begun and not is_outcome else None


def _may_be_asked_for(problem: GatewayError, execute: KeyedExecute) -> bool:
    """True if the call may have run, and its outcome can be asked for under its key.

    A gateway that knows no keys may have run it without a trace of its key, and one that replaces it knows no better.
    """
    is_lost = isinstance(problem, Unreachable | ProtocolViolation) or problem.code in _LOST
    is_known = (is_lost and problem.may_have_run and problem.knows_keys) or isinstance(problem, OutcomeUnknown)
    return is_known and execute.key is not None and problem.code != "client_closed"


def _may_pass(problem: GatewayError) -> bool:
    is_away = isinstance(problem, Unreachable | Unavailable | RateLimited) or problem.code in _LOST
    return is_away and problem.code != "client_closed"


def _refused(unknown: GatewayError, problem: GatewayError) -> GatewayError:
    """The error of an attempt that may have run, and why no repeat has told its outcome."""
    if problem is unknown:
        return unknown
    unknown.reason = unknown.reason or f"it may have run; a repeat under its key failed with {problem.code}"
    unknown.__cause__ = problem
    return unknown
