"""Real policy processes for tests: started as the supervisor starts them, replaced when the front asks for it."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import trio

from frontend.policy.embedded import EmbeddedPolicy
from frontend.policy.engine import PolicySources
from frontend.policy.question import Question
from ipc.channel.blocking import BlockingChannel
from ipc.limits import MAX_POLICY_FRAME, MAX_VERDICT_FRAME
from ipc.messages.deciding import LoadPolicy, PolicyCompiled, PolicyToFront, UsePolicy, Verdict
from ipc.protocols.policy import POLICY_TO_FRONT
from tests.support.patience import PATIENT

REPOSITORY = Path(__file__).parents[2]
DEFAULT_POLICY = REPOSITORY / "contrib" / "policy" / "gateway.rego"
HEADER = "package gateway\n\nimport rego.v1\n\n"


def start_policy_process(parent: int | None = None) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """Start `workers.rego.main` and return the front's end of its channel."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "workers.rego.main",
                "--channel-fd", str(theirs.fileno()), "--parent", str(parent or os.getpid()), "--number", "7",
            ],
            cwd=REPOSITORY,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )  # fmt: skip
    return ours, process


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill it, if it lives, and take back what it held."""
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def document(**changes: object) -> str:
    """Rego of a decision document that allows, with some fields changed."""
    fields: dict[str, object] = {
        "allow": "true", "requires_approval": "false", "deny_reason": '""', "rule": '"test"', "allowed_sinks": "[]",
        "policy_version": '"t"',
    }  # fmt: skip
    return "{" + ", ".join(f'"{name}": {value}' for name, value in (fields | changes).items()) + "}"


def sources(body: str, data: str = "{}", version: str = "t") -> PolicySources:
    """A policy of one file, `gateway.rego`."""
    return PolicySources({"gateway.rego": HEADER + body + "\n"}, data, version)


ALLOW_ALL = sources(f"decision := {document()} if is_object(input)")
"""Allows everything, and is asked each time: it reads the input as a whole, so nothing that it says is remembered."""
LOOP_ON_SPIN = sources(
    'loops if {\n\tinput.action_id == "loop"\n\tcount([1 | some x in numbers.range(1, 9000); '
    "some y in numbers.range(1, 9000); x == y + 0.5]) == 1\n}\n\n"
    f"decision := {document(allow='false', rule=chr(34) + 'looped' + chr(34))} if loops\n"
    f"else := {document()}"
)
"""Takes many seconds over the action `loop`, and allows everything else at once."""


def question(**changes: object) -> Question:
    """A question that the example policy would allow."""
    fields: dict[str, object] = {
        "principal": "dev:anonymous", "owner": None, "identity_method": "none", "identity_issuer": None,
        "identity_subject": None, "token_binding": None, "action_id": "text_digest", "action_version": "1.0.0",
        "action_risk_level": "low", "action_trust_verdict": "digest_ok", "scopes": ("tools:call",),
        "required_scopes": ("tools:call",), "requested_sinks": (), "requested_secrets": (), "egress_profile": "none",
        "targets": (), "unresolved_domains": (), "unresolved_paths": (), "fs_path": None, "calls_remaining": 5,
        "request_hash": "sha256:" + "0" * 64,
    }  # fmt: skip
    return Question(**(fields | changes))  # type: ignore[arg-type]


class PolicyPeer:
    """Asks a policy process directly, over its channel, as a front would."""

    def __init__(self) -> None:
        sock, self.process = start_policy_process()
        sock.settimeout(60)
        self.sock = sock
        self.channel: BlockingChannel[PolicyToFront] = BlockingChannel(
            sock, PolicyToFront, table=POLICY_TO_FRONT,
            cap_in=MAX_VERDICT_FRAME, cap_out=MAX_POLICY_FRAME,
        )  # fmt: skip

    def load(self, policy: PolicySources, *, load_id: str = "load-1") -> str | None:
        """Compile, and use it when it compiled. Returns the error."""
        self.channel.send(LoadPolicy(load_id, policy.modules, policy.data))
        compiled = self.channel.receive()
        assert isinstance(compiled, PolicyCompiled)
        assert compiled.load_id == load_id
        if compiled.error is None:
            self.channel.send(UsePolicy(load_id))
        return compiled.error

    def verdict(self) -> Verdict:
        """The next message, which must be a Verdict."""
        message = self.channel.receive()
        assert isinstance(message, Verdict)
        return message

    def close(self) -> None:
        """Close the channel and end the process."""
        self.channel.close()
        end(self.process)


class SmallSupervisor:
    """The supervisor's part for a policy process, with a record of the requests."""

    def __init__(self) -> None:
        self.engine = EmbeddedPolicy(self._replace, deadlines=PATIENT.policy)
        self.asked_for: list[tuple[int, str]] = []
        self.processes: list[subprocess.Popen[bytes]] = []

    def attach_new(self) -> "subprocess.Popen[bytes]":
        """Start a process and hand it to the engine."""
        sock, process = start_policy_process()
        self.processes.append(process)
        self.engine.attach(sock, process.pid)
        return process

    def _replace(self, pid: int, reason: str) -> None:
        self.asked_for.append((pid, reason))
        for process in self.processes:
            if process.pid == pid:
                end(process)
        self.attach_new()

    def close(self) -> None:
        """Kill what is left."""
        for process in self.processes:
            end(process)


@contextlib.asynccontextmanager
async def running_engine(policy: PolicySources | None = ALLOW_ALL) -> AsyncIterator[SmallSupervisor]:
    """An engine with a real process that holds `policy`."""
    supervisor = SmallSupervisor()
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(supervisor.engine.run)
            supervisor.attach_new()
            if policy is not None:
                await supervisor.engine.load(policy)
            yield supervisor
            nursery.cancel_scope.cancel()
    finally:
        supervisor.close()
