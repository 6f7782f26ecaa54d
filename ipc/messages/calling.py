"""Front and worker: one plan at a time, and its result. The worker runs it on the notary's word alone."""

from functools import cached_property

import msgspec

from contract.failures import FailureName as FailureName  # workers import ipc alone
from contract.failures import MayHaveRun as MayHaveRun
from ipc.messages.message import Message
from ipc.plan import Plan, decode_plan


class Call(Message, frozen=True, dict=True):
    """A plan to keep until the notary says that it may run (ipc/messages/attesting.py)."""

    call_id: str
    """The id of its intent."""
    encoded: bytes
    """The plan's bytes, which its hash covers."""
    deadline_seconds: float
    """Wall-clock budget of this call from its start on; the worker's own monotonic clock enforces it."""

    @cached_property
    def plan(self) -> Plan:
        """The plan, decoded once. Raises ValueError."""
        return decode_plan(self.encoded)


class Secrets(Message, frozen=True):
    """The secret values of a plan, by name. Sent after its Call, once the intent is durable, and after TokenRefused."""

    call_id: str
    values: dict[str, str]


class TokenRefused(Message, frozen=True):
    """An upstream has answered 401 to the token of this secret. Sent once for a call, which waits.

    Answered by Secrets with the same token or another one; a call that waits no longer ignores them.
    """

    call_id: str
    secret: str


class Drop(Message, frozen=True):
    """This call does not run here: forget its plan."""

    call_id: str
    is_given_up: bool = False
    """The call is not sent again, and gets no secrets. The notary may still have sent the word for it."""


class Retire(Message, frozen=True):
    """Leave with Exit.RECYCLED; sent only while idle."""


class WorkerReady(Message, frozen=True):
    """The walls stand, and the notary has spoken."""

    worker_id: str
    pid: int
    profile: str


class ProviderFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The provider-error record of the WIT, or the error that the host found. `kind` as in `provider.wit`."""

    kind: str
    message: str
    details: str | None = None
    retryable: bool = False


class Observation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The effect of one host call, as the host observed it. Verifiers use nothing else as evidence.

    `kind` is http or fs. http: `target` "METHOD url", `status`, `body_sha256`, `bytes` of the response. fs: `target`
    "operation path", `before_sha256` and `body_sha256` the file's digest before and after (None: no such file).
    """

    kind: str
    target: str
    ok: bool
    status: int | None = None
    bytes: int | None = None
    body_sha256: str | None = None
    before_sha256: str | None = None
    error: str | None = None
    resent: bool = False
    """True: the upstream refused the token, and the host has sent the request once more with another one."""


class HostCallTime(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The time of one host call, in microseconds."""

    after_us: int
    """From the begin of the call's run to its begin."""
    took_us: int


class Verification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`outcome` is one of docs/contract.md, "Verification outcomes"; `evidence` are JSON objects as texts."""

    outcome: str
    reason: str | None = None
    evidence: tuple[str, ...] = ()


class Result(Message, frozen=True):
    """The result of a Call. Front and notary get the same: the front answers with it, the notary records it.

    `outcome`: success, provider_error, fuel, memory, timeout, io_calls, host_io, trap, bad_output, response_schema,
    tool_changed, plan_refused, module_missing. `output` is JSON text and present only for success (and
    response_schema).
    """

    call_id: str
    outcome: str
    output: str | None
    failure: ProviderFailure | None
    verification: Verification
    observations: tuple[Observation, ...]
    fuel_consumed: int | None
    """None when unknown: the counter is wrong after an epoch trap."""
    duration_us: int
    io_calls: int
    retiring: bool = False
    """True: this worker has run its number of calls, and exits once its front has closed the channel."""
    failure_name: FailureName | None = None
    """The failure as the agent hears it, where the host knows more than `outcome` tells."""
    may_have_run: MayHaveRun = "unknown"
    """As far as the host saw."""
    host_times: tuple[HostCallTime, ...] = ()
    """One for each observation, in their order; none where the worker sends less than it saw."""
    violation: str | None = None
    """How the output breaks the action's response schema, "<JSON pointer>: <keyword>", where that only warns."""


FrontToWorker = Call | Secrets | Drop | Retire
WorkerToFront = WorkerReady | TokenRefused | Result

FAILED_OUTCOMES = (
    "provider_error", "fuel", "memory", "timeout", "io_calls", "host_io", "trap", "bad_output", "response_schema",
    "tool_changed", "plan_refused", "module_missing",
)  # fmt: skip
"""Every `Result.outcome` but success."""


def code_of_failure(outcome: str) -> str:
    """The error code of a call that ended with this outcome, one of FAILED_OUTCOMES."""
    return "action_digest_mismatch" if outcome == "tool_changed" else "action_execution_failed"
