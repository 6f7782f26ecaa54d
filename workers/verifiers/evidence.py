"""The material that a verifier may use."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ipc.messages.calling import Observation
from ipc.plan import Plan


class Unverified(Exception):
    """The effect is not confirmed. The message is the reason in receipt and audit; it never holds a body."""


class Evidence(NamedTuple):
    """One call: its plan, the manifest's `verification_config`, the provider's output and what the host saw."""

    plan: Plan
    config: dict[str, Any]
    output: dict[str, Any]
    observations: tuple[Observation, ...]
    pulse: Callable[[], object]
    """To be called during long work: raises HostError once the call's time is over."""
    files_dir: str
    """The folder below which files of actions lie."""
