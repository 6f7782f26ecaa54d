"""Front and notary: operations that record or sign for a call, and what came of each.

Leases, acts of operators and keys stand in administering.py, deliveries of webhooks in deliveries.py, operations that
only look in looking.py.

A front queues operations and sends those of one turn of its loop together; answers come back together, too, for each
unit. Every operation carries a number of its front's own; asked again with the same number, after the notary that took
it was killed, it answers what it answered, or would have answered, before.
"""

import msgspec

from ipc.events import AuditEvent
from ipc.expected import ExpectedFile
from ipc.messages.operation import Operation
from ipc.store import ApprovalRecord


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A DPoP proof whose signature holds, to be used once."""

    key: str


class Approver(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The operator that approved a plan, bound into the grant's signature."""

    approval_id: str
    approved_by: str
    operator_jkt: str
    """RFC 7638 thumbprint of the key that the operator's proof was signed with."""
    operator_proof_jti: str
    signature: str | None = None
    """The operator's own, of the decision. Set by the notary, from what it checked when the hold was claimed."""


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What of a plan decides how its result is judged."""

    plan_hash: str
    module_digest: str
    epoch: int
    verifier_kind: str
    max_response_bytes: int
    fuel: int
    memory_mb: int
    timeout_seconds: float
    max_io_calls: int
    file: ExpectedFile | None = None
    """What a verifier can still compare with when nothing else of the call is left."""


class Enter(Operation, frozen=True):
    """Use a proof once. Answers Entered."""

    proof: Proof


class Entered(msgspec.Struct, frozen=True):
    """`is_fresh` False: this proof has been used before. `epoch` is the one in force."""

    is_fresh: bool
    epoch: int


class Open(Operation, frozen=True):
    """Use the proof, look at the epoch, debit the budget, write the intent, sign the grant: all or nothing. Then have
    the worker run its plan, and write receipt and event, resolve the intent, end its approval and queue deliveries.

    `event` is that of the call as far as it is known; the notary completes it. `Begun` says that the intent is
    durable; what is answered is Refusal, NoSuchWorker, Unbegun, or Closed once the call has ended, or a problem with
    `is_begun`.
    """

    intent_id: str
    """New with each Open; so that a front which got no answer can still withdraw it. `refused` when it was used."""
    event: AuditEvent
    terms: Terms
    worker_id: str
    """Has the plan, or will have it in a moment."""
    proof: Proof | None = None
    has_budget: bool = False
    approver: Approver | None = None
    wants_begun: bool = False
    """`Begun` is awaited. It is not sent otherwise unless the call takes long."""
    calls_per_hour: int | None = None
    """What its principal may do in an hour (ipc/quotas.py); a call with an approver was counted when it was held."""


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """Refused with this code of the interface, and the event says so. `cause` is for the log."""

    code: str
    cause: str | None = None
    retry_after: int | None = None
    quota: str | None = None
    """The limit of its principal (ipc/quotas.py) that is reached."""


class NoSuchWorker(msgspec.Struct, frozen=True, tag=True):
    """The worker is gone. Nothing was written, and nothing used: the call may be opened with another one."""


class Unbegun(msgspec.Struct, frozen=True, tag=True):
    """The intent is durable, and its worker will not run it: it ended, or was busy for too long, before it began. The
    call is given to another worker (Assign), or withdrawn."""


class Assign(Operation, frozen=True):
    """Have another worker run a call that was answered with Unbegun. Answers as Open does from there on."""

    intent_id: str
    worker_id: str
    wants_begun: bool = False


class Recall(Operation, frozen=True):
    """Take this call back from its worker, if that has not begun it: its Open is answered with Unbegun then.

    Answers nothing of its own.
    """

    intent_id: str


class Closed(msgspec.Struct, frozen=True, tag=True):
    """The evidence is durable. `outcome` is the worker's outcome as the notary judged it."""

    grant_id: str
    receipt_id: str
    kind: str
    outcome: str
    verification_outcome: str
    runtime: dict[str, int]
    reason: str | None
    response_hash: str | None = None
    """`sha256:<hex>` of the output that the evidence is about; None without success."""
    violation: str | None = None
    """See Result; of a success, and in its event."""


class Withdraw(Operation, frozen=True):
    """The front gives a call up. One whose worker has no word yet is resolved without a receipt, its call given back,
    with its event; any other ends as cut as soon as its worker does, which the front has killed.

    Answers Withdrawn; the problem is "refused" when the intent is not open.
    """

    intent_id: str
    decision: str
    error_code: str
    reason: str | None = None


class Withdrawn(msgspec.Struct, frozen=True):
    """`is_abandoned`: nothing was executed, and the event says so."""

    is_abandoned: bool


class Refuse(Operation, frozen=True):
    """Write the one event of a refused call, and use its proof.

    A proof that was used already turns it into `replay_detected`. With `unless_held`, the same call that waits for a
    person already is answered with its hold instead. Answers Refused.
    """

    event: AuditEvent
    proof: Proof | None = None
    unless_held: bool = False


class Refused(msgspec.Struct, frozen=True):
    """`is_replay`: the proof had been used before. `held`: the hold that the same call has, and no refusal."""

    is_replay: bool = False
    held: ApprovalRecord | None = None


class Hold(Operation, frozen=True):
    """Use the proof, debit the budget, store the hold and write its event: all or nothing.

    The same call that waits already is answered with that hold, with an event and without a debit. Answers Held or
    Refusal.
    """

    event: AuditEvent
    approval: ApprovalRecord
    epoch: int
    limit: int
    """Pending holds of one session."""
    proof: Proof | None = None
    has_budget: bool = False
    calls_per_hour: int | None = None
    """As in Open."""


class Held(msgspec.Struct, frozen=True, tag=True):
    """The hold that is in force for the call."""

    approval: ApprovalRecord
    is_repeated: bool
