"""The interface of a policy engine, as the front uses it. Holds no engine."""

import hashlib
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
import trio

from frontend.policy.question import Decision, Question


class PolicySources(msgspec.Struct, frozen=True):
    """A whole policy as its author wrote it."""

    modules: dict[str, str]
    """File name -> Rego."""
    data: str
    """JSON text of data.json."""
    policy_version: str
    origin: str = ""
    """Digest of the files that this was made of, where its data is not as they have it."""

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of every byte that decides."""
        parts = msgspec.json.encode([sorted(self.modules.items()), self.data])
        return hashlib.sha256(parts).hexdigest()


Commit = Callable[[], Awaitable[None]]


class MemoStatus(msgspec.Struct, frozen=True):
    """The state of the memo for operators. `reason` is None while the memo is in use."""

    in_use: bool
    reason: str | None
    entries: int


class PolicyRefused(Exception):
    """A policy may not be used; the one before it stays in force. `problems` are sentences, one each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class PolicyUnreached(Exception):
    """The engine is unavailable, so no policy can be put in force now. `code` is of frontend/errors.py.

    `is_committed`: `commit` has returned. The policy is then the one to be put in force, nothing is decided until it
    is, and the engine goes on trying.
    """

    def __init__(self, code: str, cause: str, *, is_committed: bool = False) -> None:
        super().__init__(cause)
        self.code = code
        self.is_committed = is_committed


class PolicyEngine(Protocol):
    """Decides. Every path that ends without a decision raises; none allows."""

    @property
    def policy_version(self) -> str:
        """Version of the policy in force; empty before the first one."""

    @property
    def is_available(self) -> bool:
        """Whether a question would be answered now, as far as is known (readiness `opa`)."""

    async def decide(self, question: Question) -> Decision:
        """Raises GateError policy_engine_timeout or policy_engine_unavailable when there is no decision, and
        BudgetUnread when the decision may depend on a budget that the question leaves out."""

    async def require_life(self) -> None:
        """Return once the engine, asked now, has given a sign of life.

        Raises GateError policy_engine_unavailable when it gives none in the time of a question.
        """

    async def load(self, sources: PolicySources, commit: Commit | None = None) -> None:
        """Put another policy in force, whole. Raises PolicyRefused and changes nothing when it can't be used;
        PolicyUnreached when the engine is elsewhere and is not reached.

        `commit` is awaited between the proof that it can be used and its use: what it raises is raised here, and
        changes nothing either. Once it has returned, nothing keeps the policy from being in force.
        """


class RunningEngine(PolicyEngine, Protocol):
    """An engine as the code that runs it sees it."""

    @property
    def memo_status(self) -> MemoStatus:
        """Whether decisions are remembered, and how many are; if not, why."""

    def attach(self, sock: socket.socket, pid: int) -> None:
        """Take over a fresh policy process, with its channel."""

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
