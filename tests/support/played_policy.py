"""Policy processes that a test plays itself, to lie, to be silent and to die as it pleases."""

import json
import math
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from frontend.deadlines import PolicyDeadlines
from frontend.errors import GateError
from frontend.policy.embedded import EmbeddedPolicy
from frontend.policy.engine import PolicySources
from frontend.policy.question import Decision
from ipc.channel.framing import encode_frame
from ipc.channel.nonblocking import TrioChannel
from ipc.limits import MAX_POLICY_FRAME, MAX_VERDICT_FRAME
from ipc.messages.deciding import Ask, FrontToPolicy, LoadPolicy, PolicyCompiled, UsePolicy, Verdict
from ipc.messages.message import Message
from ipc.messages.pinging import Ping, Pong
from ipc.protocols.policy import FRONT_TO_POLICY
from tests.support.patience import PATIENCE, PATIENT
from tests.support.policy import ALLOW_ALL, question

ALLOWED = json.dumps(
    {"allow": True, "requires_approval": False, "deny_reason": "", "rule": "played", "allowed_sinks": [],
     "policy_version": "p"}
)  # fmt: skip


class PlayedPeer:
    """The policy end of one channel, in the test's hands."""

    def __init__(self, sock: socket.socket) -> None:
        self.channel: TrioChannel[FrontToPolicy] = TrioChannel(
            sock, FrontToPolicy, table=FRONT_TO_POLICY,
            cap_in=MAX_POLICY_FRAME, cap_out=MAX_VERDICT_FRAME,
        )  # fmt: skip
        self.reads: tuple[str, ...] | None = None
        """Fields that its policy reads; None where decisions can't be remembered."""
        self._raw = trio.socket.from_stdlib_socket(socket.socket(fileno=sock.dup().detach()))

    async def received(self) -> FrontToPolicy:
        """The next message that asks for more than a sign of life, which must come in time."""
        with trio.fail_after(PATIENCE):
            while True:
                message = await self.channel.receive()
                if not isinstance(message, Ping):
                    return message
                await self.channel.send(Pong())

    async def asked(self) -> Ask:
        """The next message, which must be a question."""
        message = await self.received()
        assert isinstance(message, Ask)
        return message

    async def candidate(self) -> LoadPolicy:
        """The next message, which must be a policy to compile."""
        message = await self.received()
        assert isinstance(message, LoadPolicy)
        return message

    async def accept_policy(self) -> LoadPolicy:
        """Take a policy over as a sound process does."""
        load = await self.candidate()
        await self.channel.send(PolicyCompiled(load.load_id, None, self.reads))
        assert await self.received() == UsePolicy(load.load_id)
        return load

    async def send(self, message: Message) -> None:
        """Send a message, in its turn or out of it."""
        await self._raw.send(encode_frame(message, MAX_VERDICT_FRAME))

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self._raw.send(data)

    def close(self) -> None:
        """Close every handle of this end."""
        self.channel.close()
        self._raw.close()


class PlayedEngine:
    """An engine whose processes are all played. It records the processes that it asks for; the test alone replaces
    them."""

    def __init__(self, deadlines: PolicyDeadlines) -> None:
        self.engine = EmbeddedPolicy(self._note, deadlines=deadlines)
        self.asked_for: list[tuple[int, str]] = []
        self.peers: list[PlayedPeer] = []
        self._noted = trio.Event()

    def _note(self, pid: int, reason: str) -> None:
        self.asked_for.append((pid, reason))
        self._noted.set()

    async def reason(self) -> str:
        """Why the newest peer was given up, once it was."""
        with trio.fail_after(PATIENCE):
            await self._noted.wait()
        self._noted = trio.Event()
        return self.asked_for[-1][1]

    def attach_peer(self) -> PlayedPeer:
        """Hand the engine a fresh peer; pids count from 1."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        peer = PlayedPeer(theirs)
        self.peers.append(peer)
        self.engine.attach(ours, len(self.peers))
        return peer

    async def load(self, peer: PlayedPeer, sources: PolicySources) -> None:
        """Load a policy into the engine by way of this peer."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_policy)
            await self.engine.load(sources)

    def close(self) -> None:
        """Close all peers."""
        for peer in self.peers:
            peer.close()


@asynccontextmanager
async def playing(deadlines: PolicyDeadlines = PATIENT.policy) -> AsyncIterator[PlayedEngine]:
    """A running engine without a process."""
    played = PlayedEngine(deadlines)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(played.engine.run)
            yield played
            nursery.cancel_scope.cancel()
    finally:
        played.close()


class Outcome:
    """The answer to one question: a Decision or the code and cause of a GateError."""

    def __init__(self) -> None:
        self.decision: Decision | None = None
        self.error: GateError | None = None
        self.done = trio.Event()
        self.seconds = math.inf

    async def ask(self, engine: EmbeddedPolicy, **changes: object) -> None:
        began = trio.current_time()
        try:
            self.decision = await engine.decide(question(**changes))
        except GateError as error:
            self.error = error
        self.seconds = trio.current_time() - began
        self.done.set()

    async def code(self) -> str:
        with trio.fail_after(PATIENCE):
            await self.done.wait()
        assert self.decision is None
        assert self.error is not None
        return self.error.code

    async def rule(self) -> str:
        with trio.fail_after(PATIENCE):
            await self.done.wait()
        assert self.decision is not None, self.error and self.error.cause
        return self.decision.rule


def asking(nursery: trio.Nursery, played: PlayedEngine, **changes: object) -> Outcome:
    outcome = Outcome()
    nursery.start_soon(lambda: outcome.ask(played.engine, **changes))
    return outcome


async def serves(nursery: trio.Nursery, played: PlayedEngine, peer: PlayedPeer) -> None:
    """Ask a question that reaches this peer, and have its answer count."""
    outcome = asking(nursery, played)
    await peer.send(Verdict((await peer.asked()).question_id, ALLOWED))
    assert await outcome.rule() == "played"


async def serving(played: PlayedEngine) -> PlayedPeer:
    peer = played.attach_peer()
    await played.load(peer, ALLOW_ALL)
    assert played.engine.is_available
    return peer
