"""Messages between the processes of `gateway check` and `gateway policy`: short-lived, one question at a time.

The supervisor starts them and connects them by socket pairs. They serve no clients and keep no state.

    supervisor ⇄ checking front     which files to look at; problems, one by one
    checking front ⇄ module checker modules to look at and to compile; verdicts
    front ⇄ policy examiner         a policy with its tests; rules to evaluate, values
"""

from typing import Any

import msgspec

from ipc.messages.message import Message
from ipc.settings import Settings


class CheckFiles(Message, frozen=True):
    """Look at the files that these settings name. Two descriptors: of a policy process and of a module checker."""

    FDS = 2
    settings: Settings
    parts: tuple[str, ...]
    """The parts to check: `actions`, `policy`, `secrets`, `webhooks`, `pointers` (whether actions offer the values that
    the policy names); with `connect` backends are asked, too."""


class FoundProblem(Message, frozen=True):
    """One problem, or a warning: of what may be meant so. With `setting` it is the setting that stands at the wrong
    place, not `file`."""

    file: str
    line: int
    field: str
    message: str
    mend: str
    setting: tuple[str | int, ...] = ()
    is_warning: bool = False
    is_unreached: bool = False
    """The setting is valid, but the server that it names does not answer now."""


class FilesChecked(Message, frozen=True):
    """The last word: how many actions there are, and the policy's version where it could be read."""

    actions: int
    policy_version: str
    policy_not_remembered: str | None
    """Why decisions of the policy can't be answered from memory; None if they can, or without a policy."""


class Asking(msgspec.Struct, frozen=True):
    """A call of which policy would be asked (`gateway policy explain`), as JSON in a file that is handed on."""

    settings: Settings
    action_id: str
    principal: str
    request: bytes | None
    """The body of the call; None where it is not known: then `{}` is tried."""
    calls_remaining: int | None = None
    request_hash: str | None = None
    """The expected hash of the canonical request."""


class ExplainedInput(msgspec.Struct, frozen=True):
    """The input of policy (docs/policy.md) and the assumptions made for it, in sentences; or why it is not asked."""

    document: dict[str, Any]
    assumed: tuple[str, ...] = ()
    problem: str = ""
    sinks: dict[str, tuple[str, ...]] | None = None
    """Action -> the sinks that its manifest declares. None where no manifests are known: then policy data is shown with
    the sinks that stand in its file."""


class Examine(Message, frozen=True):
    """Compile a policy beside its tests. `rules` are those that will be asked for, as `gateway/denial`."""

    modules: dict[str, str]
    data: str
    rules: tuple[str, ...]


class Examined(Message, frozen=True):
    """Outcome of Examine: `problems` is None when rules may be evaluated, else a sentence a line."""

    problems: str | None


class Evaluate(Message, frozen=True):
    """Evaluate one rule over one input document."""

    rule: str
    input: dict[str, Any]


class Evaluated(Message, frozen=True):
    """`outcome`: value, undefined, error, timeout, crashed. `text`: the value as JSON, or what went wrong."""

    rule: str
    outcome: str
    text: str
    printed: str
    """The shortened output of `print(…)`."""
    seconds: float


CheckerToSupervisor = FoundProblem | FilesChecked
ToExaminer = Examine | Evaluate
FromExaminer = Examined | Evaluated

MAX_PROBLEM_FRAME = 64 * 1024
MAX_PROBLEMS = 2000
"""More than a person reads; a checker that finds more stops."""
MAX_VALUE_CHARACTERS = 64 * 1024
"""Bound for one value, and for the output of one rule."""
MAX_VALUE_FRAME = 1024 * 1024
