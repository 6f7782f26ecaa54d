"""What the front needs of a policy engine, whichever it is. Holds no engine."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from frontend.policy.question import Decision, Question

QUESTION_SECONDS = 1.0
"""How long one question may take (docs/contract.md, "Limits": a fixed constant)."""


class PolicySources(msgspec.Struct, frozen=True):
    """A whole policy as its author wrote it."""

    modules: dict[str, str]
    """File name -> Rego."""
    data: str
    """JSON text of data.json."""
    policy_version: str

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of every byte that decides."""
        parts = msgspec.json.encode([sorted(self.modules.items()), self.data])
        return hashlib.sha256(parts).hexdigest()


Commit = Callable[[], Awaitable[None]]


class PolicyRefused(Exception):
    """A policy may not be used; the one before it stays in force. `problems` are sentences, one each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class PolicyEngine(Protocol):
    """Decides. Every path that ends without a decision raises; none allows."""

    @property
    def policy_version(self) -> str:
        """Version of the policy in force; empty before the first one."""

    @property
    def is_available(self) -> bool:
        """Whether a question would be answered now, as far as is known (readiness `opa`)."""

    async def decide(self, question: Question) -> Decision:
        """Raises GateError policy_engine_timeout or policy_engine_unavailable when there is no decision."""

    async def load(self, sources: PolicySources, commit: Commit | None = None) -> None:
        """Put another policy in force, whole. Raises PolicyRefused and changes nothing when it can't be used.

        `commit` is awaited between the proof that it can be used and its use: what it raises is raised here, and
        changes nothing either. Once it has returned, nothing keeps the policy from being in force.
        """
