"""A world for flows of the client library without a socket: time stands still until a flow lets it go by."""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from gateway_client import Address, Executed, Held, LeaseTerms, Limits, ProofKey
from gateway_client.calling.agent import AgentCore
from gateway_client.errors import GatewayError
from gateway_client.wire.exchange import ReceivedAnswer, SentRequest
from gateway_client.wire.flows import Alone, Clock, Flow, Pause, Send

T = TypeVar("T")

START = 1_800_000_000.0


def answer(status: int, body: Any, **headers: str) -> ReceivedAnswer:
    """A JSON answer; underscores in header names become dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ReceivedAnswer(status, {"content-type": "application/json"} | named, json.dumps(body).encode())


def refusal(status: int, code: str, retry_after: int | None = None) -> ReceivedAnswer:
    headers = {} if retry_after is None else {"retry_after": str(retry_after)}
    return answer(status, {"error": code}, **headers)


EXECUTED: dict[str, Any] = {
    "decision": "executed", "trace_id": "trc_1", "action_id": "a", "grant_id": "grant_1", "receipt_id": "rcpt_1",
    "output": {}, "verification_outcome": "verified",
    "verification": {"outcome": "verified", "is_fully_successful": True},
    "runtime": {"duration_ms": 1, "exit_code": 0, "fuel_consumed": 1},
}  # fmt: skip
HELD = {"decision": "pending_approval", "approval_id": "apr_1", "request_hash": "sha256:00", "trace_id": "trc_1"}
RECEIPT: dict[str, Any] = {
    "receipt_id": "rcpt_1", "grant_id": "grant_1", "provider_module_digest": "sha256:00", "provider_receipt": {"n": 1},
    "normalized_result": {"kind": "success", "summary": "done"}, "verification_outcome": {"status": "verified"},
    "effect_evidence": [], "result_hash": "sha256:00", "started_at": "2026-11-21T11:12:13.123Z",
    "finished_at": "2026-11-21T11:12:13.125Z", "failure_class": None,
}  # fmt: skip

Reply = ReceivedAnswer | GatewayError


@dataclass
class World:
    """Plays gateway, network and clocks. `replies` answer everything but leases, in turn; the last one for ever."""

    replies: list[Reply] = field(default_factory=lambda: [answer(200, EXECUTED)])
    lease_replies: list[Reply] = field(default_factory=list)
    lease_seconds: float = 300.0
    time: float = START
    sent: list[SentRequest] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)
    leases: int = 0
    knows_keys: bool = True
    """The gateway that answers the next request for a lease knows idempotency keys."""
    on_send: Callable[[SentRequest], None] = lambda request: None

    @property
    def clock(self) -> Clock:
        """Both clocks of this world."""
        return Clock(now=lambda: self.time, monotonic=lambda: self.time)

    def run(self, flow: Flow[T]) -> T:
        """Perform a flow as a runner does."""
        walk = self.steps(flow)
        try:
            while True:
                next(walk)
        except StopIteration as end:
            result: T = end.value
            return result

    def steps(self, flow: Flow[T]) -> Generator[SentRequest, None, Any]:
        """Perform a flow and stop at every request before it is answered, so that several can be interleaved."""
        try:
            step = next(flow)
            while True:
                try:
                    if isinstance(step, Pause):
                        self.paused.append(step.seconds)
                        self.time += step.seconds
                        reply: Any = None
                    elif isinstance(step, Alone):
                        reply = yield from self.steps(step.flow)
                    else:
                        yield step.request
                        reply = self._reply(step)
                except GatewayError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(reply)
        except StopIteration as end:
            return end.value

    def paths(self) -> list[str]:
        """The requests so far, in order."""
        return [request.target for request in self.sent]

    def header(self, name: str, path: str | None = None) -> list[str]:
        """The values of a header in every request (to `path`) that had it."""
        return [
            value
            for request in self.sent
            for key, value in request.headers
            if key == name and path in (None, request.target)
        ]

    def _reply(self, step: Send) -> ReceivedAnswer:
        self.sent.append(step.request)
        self.seconds.append(step.seconds)
        self.on_send(step.request)
        if step.request.target == "/v1/leases":
            reply = self.lease_replies.pop(0) if self.lease_replies else self._lease()
        else:
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, GatewayError):
            raise reply
        return reply

    def _lease(self) -> ReceivedAnswer:
        self.leases += 1
        end = datetime.fromtimestamp(self.time + self.lease_seconds, UTC).isoformat().replace("+00:00", "Z")
        body = {
            "lease_jwt": f"lease-{self.leases}", "session_id": f"ses_{self.leases}", "lease_jti": f"lea_{self.leases}",
            "expires_at": end,
        }  # fmt: skip
        return answer(200, body, **({"x_idempotency_seconds": "86400"} if self.knows_keys else {}))


KEY = ProofKey.generate()


def core_in(world: World, terms: LeaseTerms | None = None) -> AgentCore:
    """An agent of this world."""
    address = Address.parse("https://gateway.test")
    return AgentCore(address, KEY, terms or LeaseTerms(), Limits(), world.clock)


def execute(world: World, core: AgentCore) -> Executed | Held:
    """One call that does not wait."""
    return world.run(core.execute("a", {}, waits=False))


def polled(state: str, **more: Any) -> Reply:
    """The agent's view of its hold."""
    return answer(200, {"approval_id": "apr_1", "state": state} | more)
