"""The base of agent and operator: one call, its deadline, and when it may be sent again. No I/O.

Guarantees that every attempt has a proof of its own, and that nothing is repeated that may have happened already:
`Repeat` says what may be. A wait never goes beyond the deadline.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from gateway_client.contract.actions import ActionSummary
from gateway_client.contract.health import Readiness
from gateway_client.errors import GatewayError, ProtocolViolation, RateLimited, Unavailable, Unreachable
from gateway_client.results import Manifest
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import USER_AGENT, Headers, ReceivedAnswer, SentRequest, UnprovenCall, path_of
from gateway_client.wire.flows import Clock, Flow, Pause, Send

REFUSED_BEFORE_DISPATCH = frozenset(
    {
        "draining",
        "overloaded",
        "policy_engine_unavailable",
        "policy_engine_timeout",
        "replay_cache_unavailable",
        "rate_limit_exceeded",
    }
)
"""Codes after which an execute may be sent again: nothing was dispatched, debited or held (docs/errors.md).

`budget_store_unavailable` and `approval_store_unavailable` are not among them: a debit may have been written, and
asking again would take a second call from the budget.
"""
MAX_SECONDS = 604_800


class Repeat(Enum):
    """After which refusals a call is sent again, provided that the answer says when (`Retry-After`)."""

    READ = "read"
    """Any 429 or 503; and once when the connection was lost."""
    BEFORE_DISPATCH = "before dispatch"
    """REFUSED_BEFORE_DISPATCH."""
    RATE = "rate"
    """`rate_limit_exceeded` alone: an operator's word is not given twice by a library."""
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a client; times in seconds. Every call of a method may name its own `timeout`.

    `execute_timeout` bounds a call without its wait for approval: longer than the actions' own `timeout_seconds`.
    `repeats` is how often a refused call is sent again at most. Answers over `max_answer_bytes` are not read.
    """

    timeout: float = 15.0
    execute_timeout: float = 60.0
    connect_timeout: float = 5.0
    max_answer_bytes: int = 16 * 1024 * 1024
    repeats: int = 2


DEFAULT_LIMITS = Limits()


class ProofMaker(Protocol):
    """Makes the headers that prove one request; called once an attempt."""

    def __call__(self, call: UnprovenCall, /) -> Headers:
        """Authorization and DPoP, or nothing."""


def unproven(_call: UnprovenCall) -> Headers:
    """For the endpoints that need no authentication."""
    return ()


class Core:
    """Calls without authentication, and the way of every call."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.limits = limits
        self.clock = clock

    def health(self) -> Flow[bool]:
        """True when the gateway answers `GET /healthz` with ok."""
        answer = yield from self.ask(UnprovenCall("GET", "/healthz"), self.deadline())
        return _object(answer.expect(200)).get("status") == "ok"

    def ready(self) -> Flow[Readiness]:
        """Whether the gateway can serve calls, dependency by dependency. Not being ready is an answer, not an error."""
        answer = yield from self.ask(UnprovenCall("GET", "/readyz"), self.deadline(), Repeat.RATE)
        if answer.status == 503 and "status" not in _object(answer):
            raise answer.error()
        return decode(Readiness, answer.expect(200, 503).json(), "readiness")

    def actions(self) -> Flow[tuple[ActionSummary, ...]]:
        """All registered actions."""
        answer = yield from self.ask(UnprovenCall("GET", "/v1/actions"), self.deadline())
        listed = answer.expect(200).json()
        if isinstance(listed, dict):
            listed = listed.get("actions")
        if not isinstance(listed, list):
            raise ProtocolViolation("the actions are not an array", status=answer.status)
        return tuple(decode(ActionSummary, one, "action") for one in listed)

    def manifest(self, action_id: str) -> Flow[Manifest]:
        """The manifest of one action. Raises NotFound."""
        answer = yield from self.ask(UnprovenCall("GET", path_of("v1", "actions", action_id)), self.deadline())
        return decode(Manifest, answer.expect(200).json(), "manifest")

    def request_schema(self, action_id: str) -> Flow[dict[str, Any]]:
        """The JSON Schema of an action's request. Raises NotFound, also when none is declared."""
        path = path_of("v1", "actions", action_id, "schema", "request")
        answer = yield from self.ask(UnprovenCall("GET", path), self.deadline())
        return _object(answer.expect(200))

    def deadline(self, seconds: float | None = None) -> float:
        """A moment of the monotonic clock. Raises ValueError for a time that is not above zero, or beyond a week."""
        seconds = self.limits.timeout if seconds is None else seconds
        if not 0 < seconds <= MAX_SECONDS:
            raise ValueError(f"a timeout is a number of seconds above zero, at most {MAX_SECONDS}")
        return self.clock.monotonic() + seconds

    def left(self, deadline: float) -> float:
        """Seconds until `deadline`. Raises Unreachable timed_out after it."""
        left = deadline - self.clock.monotonic()
        if left <= 0:
            raise Unreachable("timed_out", was_sent=False)
        return left

    def ask(
        self, call: UnprovenCall, deadline: float, repeat: Repeat = Repeat.READ, prove: ProofMaker = unproven
    ) -> Flow[ReceivedAnswer]:
        """The answer to a call, whatever its status: the last one when it was sent more than once.

        Raises Unreachable, ProtocolViolation.
        """
        repeats, was_lost = 0, False
        while True:
            left = self.left(deadline)
            request = _request(call, prove)
            try:
                answer: ReceivedAnswer = replace((yield Send(request, left)), secrets=request.secrets)
            except Unreachable as error:
                if repeat is not Repeat.READ or was_lost or error.code != "connection_lost":
                    raise
                was_lost = True
                continue
            wait = _wait_before_next(answer, repeat) if repeats < self.limits.repeats else None
            if wait is None or wait >= deadline - self.clock.monotonic():
                return answer
            repeats += 1
            yield Pause(wait)


def json_call(method: str, path: str, body: object = None, query: str = "") -> UnprovenCall:
    """A call with a JSON body, or without one when it is None. Raises ValueError for what JSON can't hold."""
    return UnprovenCall(method, path, query, None if body is None else encode_json(body))


def encode_json(value: object) -> bytes:
    """`value` as JSON. Raises ValueError for what JSON can't hold, NaN and lone surrogates included."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        raise ValueError("this can't be sent as JSON") from None


def _object(answer: ReceivedAnswer) -> dict[str, Any]:
    document = answer.json()
    if not isinstance(document, dict):
        raise ProtocolViolation("the answer is not a JSON object", status=answer.status)
    return document


def _request(call: UnprovenCall, prove: Callable[[UnprovenCall], Headers]) -> SentRequest:
    headers: Headers = (("Accept", "*/*"), ("Accept-Encoding", "identity"), ("User-Agent", USER_AGENT))
    if call.body is not None:
        headers += (("Content-Type", "application/json"),)
    return SentRequest(call.method, call.target, headers + call.headers + prove(call), call.body)


def _wait_before_next(answer: ReceivedAnswer, repeat: Repeat) -> float | None:
    """Seconds to wait before the same call may be sent again; None when it may not."""
    if repeat is Repeat.NEVER or answer.status not in (429, 503) or answer.retry_after is None:
        return None
    error: GatewayError = answer.error()
    if not isinstance(error, RateLimited | Unavailable):
        return None
    if repeat is Repeat.RATE:
        return error.retry_after if error.code == "rate_limit_exceeded" else None
    if repeat is Repeat.BEFORE_DISPATCH:
        return error.retry_after if error.code in REFUSED_BEFORE_DISPATCH else None
    return error.retry_after
