"""A supervisor small enough to be read: starts and kills real echo workers for pools under test."""

import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import trio

from frontend.pool.pool import Pools
from ipc.messages import AttachWorker, Call
from ipc.plan import Egress, Limits, Plan
from tests.support.echo_template import EchoProcess, echo_template

DEADLINE = 60.0

PLAN = Plan(
    trace_id="trc_1", action_id="echo", action_version="1.0.0", risk_level="low", provider_module_digest="sha256:00",
    required_imports=(), profile="compute", isolation="pooled", principal="dev:anonymous", owner=None,
    session_id="ses_1", scopes=("tools:call",), lease_jti="lea_1", request="{}", request_hash="sha256:00",
    provider_input="{}", limits=Limits(), egress=Egress(), files=None, http_request=None, secrets=(), targets=(),
    sinks=(), unresolved_domains=(), unresolved_paths=(), verifier_kind="unverifiable", verification_config="{}",
    response_schema=None, enforce_response_schema=True, max_response_bytes=1024, policy_version="1",
    policy_rule="allow", calls_remaining=None, epoch=0, created_at="2026-01-01T00:00:00.000Z",
)  # fmt: skip


class Desk:
    """Starts and kills worker processes as the supervisor would, and remembers what the pools asked for."""

    def __init__(self) -> None:
        self.pools: Pools
        self.grant_jwks = '{"keys": []}'
        self.answers_needs = True
        self.reports_ends = True
        self.needs: list[str] = []
        self.wanted: list[str] = []
        self.kills: list[tuple[str, str]] = []
        self.processes: dict[str, EchoProcess] = {}
        self.ended: dict[str, int] = {}

    def need(self, profile: str) -> None:
        self.needs.append(profile)
        if self.answers_needs:
            self.wanted.append(profile)

    def kill(self, worker_id: str, reason: str) -> None:
        self.kills.append((worker_id, reason))
        self.end(worker_id)

    def start(
        self, profile: str = "compute", *, generation: int = 0, first: str = "ready", pid: int | None = None
    ) -> str:
        """Start a worker and attach it."""
        worker_id = f"{profile}-{len(self.processes) + 1}"
        ours, theirs = socket.socketpair()
        with theirs:
            process = echo_template().fork(
                theirs.fileno(), ["--worker-id", worker_id, "--profile", profile, "--first", first]
            )
        self.processes[worker_id] = process
        self.pools.attach(AttachWorker(worker_id, profile, pid or process.pid, generation), ours.detach())
        return worker_id

    def end(self, worker_id: str) -> None:
        """SIGKILL; the pools hear of it from `watch`."""
        self.processes[worker_id].kill()

    async def watch(self) -> None:
        """Start the workers that were asked for and report processes that have ended, as the supervisor does."""
        while True:
            while self.wanted:
                self.start(self.wanted.pop(0))
            for worker_id, process in self.processes.items():
                if self.reports_ends and worker_id not in self.ended and (code := process.poll()) is not None:
                    self.ended[worker_id] = code
                    self.pools.gone(worker_id)
            await trio.sleep(0.002)

    async def serve(
        self, action: str = "echo", isolation: str = "pooled", *, seconds: float = DEADLINE, deadline: float = DEADLINE
    ) -> str:
        """One call; which worker served it. Raises NoWorker, WorkerLost."""
        async with self.pools.lease("compute", isolation, seconds) as worker:
            with trio.fail_after(DEADLINE):
                await worker.call(call(action, deadline=deadline))
            return worker.worker_id

    def idle(self, profile: str = "compute") -> int:
        return self.pools.census()[profile].idle


Pooling = Callable[..., AbstractAsyncContextManager[Desk]]
"""`async with pooling(workers, max=…, min_spare=…, idle_seconds=…) as desk`: so many compute workers, ready."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    with trio.fail_after(DEADLINE):
        while not condition():  # noqa: ASYNC110 (what is waited for has no event)
            await trio.sleep(0.002)


def call(action: str = "echo", call_id: str = "call-1", deadline: float = DEADLINE, **changes: Any) -> Call:
    """A call that makes the echo worker do `action`."""
    plan = msgspec.structs.replace(PLAN, action_id=action, **changes)
    return Call(call_id, plan, "grant", {}, deadline)
