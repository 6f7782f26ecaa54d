"""A supervisor small enough to be read: starts and kills real echo workers for pools under test."""

import itertools
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol

import msgspec
import trio

from frontend.pool.channel import WorkerChannel, WorkerLost
from frontend.pool.pool import Pools
from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.packets import PacketChannel, packet_pair
from ipc.limits import MAX_CONTROL_FRAME, MAX_RESULT_FRAME
from ipc.messages.attesting import Permit, Tied, WorkerToNotary
from ipc.messages.calling import Call, Result
from ipc.messages.control import AttachWorker
from ipc.messages.notarising import WorkerBroke
from ipc.plan import CallLimits, Plan, PlanEgress, hash_of, seal
from ipc.protocols.worker import WORKER_TO_NOTARY
from supervisor.children.backoff import reason_of
from tests.support.echo_template import EchoProcess, echo_template
from tests.support.echo_worker import GO_ON

DEADLINE = 60.0

PLAN = Plan(
    trace_id="trc_1",
    action_id="echo",
    action_version="1.0.0",
    risk_level="low",
    provider_module_digest="sha256:00",
    required_imports=(),
    profile="compute",
    isolation="pooled",
    principal="dev:anonymous",
    owner=None,
    session_id="ses_1",
    scopes=("tools:call",),
    lease_jti="lea_1",
    request="{}",
    request_hash="sha256:00",
    provider_input="{}",
    limits=CallLimits(),
    egress=PlanEgress(),
    files=None,
    http_request=None,
    secrets=(),
    targets=(),
    sinks=(),
    unresolved_domains=(),
    unresolved_paths=(),
    verifier_kind="unverifiable",
    verification_config="{}",
    response_schema=None,
    enforce_response_schema=True,
    max_response_bytes=1024,
    policy_version="1",
    policy_rule="allow",
    calls_remaining=None,
    epoch=0,
    created_at="2026-01-01T00:00:00.000Z",
)


class Ties(Protocol):
    """The notary, as the supervisor speaks to it about workers."""

    def tie(self, worker_id: str, front_id: str, notarys: socket.socket, workers: socket.socket) -> None:
        """A worker's channel: both ends, which stay the caller's."""

    def end(self, worker_id: str, reason: str) -> None:
        """A worker's process has ended."""

    def broken(self) -> list[WorkerBroke]:
        """The notary's messages about workers since the last call."""


class PlayedNotary:
    """Gives the word, and hears what workers tell; there is no ledger behind it."""

    def __init__(self) -> None:
        self._channels: dict[str, PacketChannel[Result]] = {}

    def tie(self, worker_id: str, front_id: str, notarys: socket.socket, workers: socket.socket) -> None:
        """As Ties."""
        ours = notarys.dup()
        ours.setblocking(False)
        channel: PacketChannel[Result] = PacketChannel(
            ours, WorkerToNotary, table=WORKER_TO_NOTARY, cap_in=MAX_RESULT_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        channel.send(Tied())
        self._channels[worker_id] = channel

    def end(self, worker_id: str, reason: str) -> None:
        """As Ties: what the worker told before is still to be heard."""

    def broken(self) -> list[WorkerBroke]:
        """As Ties."""
        return []

    def word(self, worker_id: str, call: Call) -> None:
        """The plan of this call may run."""
        with suppress(OSError):  # it is gone, and will tell nothing
            self._channels[worker_id].send(Permit(call.call_id, hash_of(call.encoded), is_approved=False))

    async def heard(self, worker_id: str) -> Result | None:
        """The next result of a worker; None once it has ended."""
        channel = self._channels[worker_id]
        with trio.fail_after(DEADLINE):
            while True:
                try:
                    if (result := channel.receive()) is not None:
                        return result
                except BlockingIOError:
                    await trio.lowlevel.wait_readable(channel.fileno())
                except (ChannelClosed, OSError):
                    return None

    def close(self) -> None:
        """Close every channel."""
        for channel in self._channels.values():
            channel.close()


class Desk:
    """Starts and kills worker processes as the supervisor would, and remembers what the pools asked for."""

    def __init__(
        self, ties: Ties | None = None, front_id: str = "front-1-a", numbers: Iterator[int] | None = None
    ) -> None:  # fmt: skip
        self.pools: Pools
        self.notary = PlayedNotary()
        """A stand-in for the notary's ties, for pools without a front."""
        self._ties: Ties = self.notary if ties is None else ties
        self._front_id = front_id
        self._numbers = itertools.count(1) if numbers is None else numbers
        self.answers_needs = True
        self.reports_ends = True
        self.killed: Callable[[], None] | None = None
        """Called before `kill` returns, when the notary knows that the killed worker has ended. None: `kill`
        returns at once."""
        self.needs: list[str] = []
        self.wanted: list[str] = []
        self.greeted: list[str] = []
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
        if self.killed is not None:
            self.note_end(worker_id, self.processes[worker_id].wait(DEADLINE))
            self.killed()

    def start(
        self, profile: str = "compute", *, generation: int = 0, first: str = "ready", pid: int | None = None
    ) -> str:
        """Start a worker, tie it to the notary and attach it."""
        worker_id = f"{profile}-{next(self._numbers)}"
        ours, theirs = socket.socketpair()
        notarys, workers = packet_pair()
        with theirs, notarys, workers:
            self._ties.tie(worker_id, self._front_id, notarys, workers)
            process = echo_template().fork(
                (theirs.fileno(), workers.fileno()),
                ["--worker-id", worker_id, "--profile", profile, "--first", first],
            )  # fmt: skip
        self.processes[worker_id] = process
        self.pools.attach(AttachWorker(worker_id, profile, pid or process.pid, generation), ours.detach())
        return worker_id

    def end(self, worker_id: str) -> None:
        """Send SIGKILL; `watch` reports it to the pools."""
        if worker_id in self.processes:
            self.processes[worker_id].kill()

    def go_on(self, worker_id: str) -> None:
        """Let a call with the action `wait` end."""
        self.processes[worker_id].send_signal(GO_ON)

    async def watch(self) -> None:
        """Start the workers that were asked for and report processes that have ended, as the supervisor does."""
        while True:
            while self.wanted:
                self.start(self.wanted.pop(0))
            for broke in self._ties.broken():
                if broke.worker_id in self.processes:
                    self.end(broke.worker_id)
            for worker_id, process in self.processes.items():
                if self.reports_ends and worker_id not in self.ended and (code := process.poll()) is not None:
                    self.note_end(worker_id, code)
                    self.pools.gone(worker_id)
            await trio.sleep(0.002)

    def note_end(self, worker_id: str, code: int) -> None:
        """Tell the notary of a process that has ended."""
        self.ended[worker_id] = code
        self._ties.end(worker_id, reason_of(code))

    def close(self) -> None:
        """Kill whatever lives, and tell the notary."""
        for worker_id, process in self.processes.items():
            process.kill()
            code = process.wait(DEADLINE)
            if worker_id not in self.ended:
                self.note_end(worker_id, code)
        self.notary.close()

    async def run(self, worker: WorkerChannel, call: Call) -> Result:
        """One call with the played notary's word, from the plan to the output. Raises WorkerLost, FrameError."""
        word = trio.Event()
        # As the notary's does, the word leaves when this task waits: a large plan is taken by then alone.
        trio.lowlevel.current_trio_token().run_sync_soon(self._word, worker.worker_id, call, word)
        try:
            await worker.give(call)
        except (WorkerLost, FrameError):
            word.set()
            raise
        if not word.is_set():
            self._word(worker.worker_id, call, word)
        return await self._finished(worker, call)

    def _word(self, worker_id: str, call: Call, is_said: trio.Event) -> None:
        if not is_said.is_set():
            is_said.set()
            self.notary.word(worker_id, call)

    async def finish(self, worker: WorkerChannel, call: Call) -> Result:
        """The word for a plan that was given, and its output once the notary knows how it ended. Raises WorkerLost."""
        self.notary.word(worker.worker_id, call)
        return await self._finished(worker, call)

    async def _finished(self, worker: WorkerChannel, call: Call) -> Result:
        await self.notary.heard(worker.worker_id)
        return await worker.result(call.call_id)

    async def serve(self, action: str = "echo", isolation: str = "pooled", *, seconds: float = DEADLINE) -> str:
        """One call; which worker served it. Raises NoWorker, WorkerLost."""
        async with self.pools.lease("compute", isolation, seconds) as worker:
            with trio.fail_after(DEADLINE):
                await self.run(worker, call(action))
            return worker.worker_id

    def idle(self, profile: str = "compute") -> int:
        return self.pools.census()[profile].idle


Pooling = Callable[..., AbstractAsyncContextManager[Desk]]
"""`async with pooling(workers, max=…, min_spare=…, idle_seconds=…, deadlines=…, max_waiters=…, abreast=…, profile=…) as
desk`: so many workers of the profile, ready; compute workers where it is not given."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    with trio.fail_after(DEADLINE):
        while not condition():  # noqa: ASYNC110 (what is waited for has no event)
            await trio.sleep(0.002)


_numbers = itertools.count(1)


def call(action: str = "echo", call_id: str | None = None, deadline: float = DEADLINE, **changes: Any) -> Call:
    """A call that makes the echo worker do `action`. Its id is one that no other call has, unless it is given."""
    plan = msgspec.structs.replace(PLAN, action_id=action, **changes)
    return Call(call_id or f"call-{next(_numbers)}", seal(plan).encoded, deadline)
