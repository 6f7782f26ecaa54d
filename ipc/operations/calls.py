"""Operations that record and sign for a call, and their answers.

A front queues operations and sends those of one turn of its event loop together. The answers of one unit come back
together, too. Every operation carries a number that its front chose. When the notary was killed, the front asks again
under the same number, and gets the answer that the killed notary gave or would have given.
"""

import msgspec

from contract.failures import CallFailure
from ipc.backends.store import ApprovalRecord
from ipc.caps import CapUse
from ipc.configuration.quorum import GivenApproval, Quorum
from ipc.evidence.events import AuditEvent
from ipc.evidence.kept_values import KeptValues
from ipc.expected import FileToLeave
from ipc.operations.operation import FrontOperation
from ipc.operations.standing import StandingUse


class ProofRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A DPoP proof whose signature holds, to be used once. `iat` in Unix seconds."""

    key: str
    iat: float


class Approver(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The operator that approved a plan, bound into the grant's signature."""

    approval_id: str
    approved_by: str
    operator_jkt: str
    """RFC 7638 thumbprint of the key that the operator's proof was signed with."""
    operator_proof_jti: str
    signature: str | None = None
    """The operator's own signature of the decision. The notary sets it, after it checked it when the hold was
    claimed."""
    quorum: Quorum | None = None
    approvals: tuple[GivenApproval, ...] = ()
    """The approvals of a hold that needed several; the notary sets both fields."""

    @property
    def unsigned(self) -> "Approver":
        """Without the operators' signatures, which stand in events and receipt."""
        approvals = tuple(msgspec.structs.replace(one, signature=None) for one in self.approvals)
        return msgspec.structs.replace(self, signature=None, approvals=approvals)


class GrantTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part of a plan that decides how its result is judged."""

    plan_hash: str
    module_digest: str
    epoch: int
    verifier_kind: str
    max_response_bytes: int
    fuel: int
    memory_mb: int
    timeout_seconds: float
    max_io_calls: int
    only_computes: bool = False
    """The plan has no effect outside its worker."""
    file: FileToLeave | None = None
    """The file that a verifier can still compare with when nothing else of the call is left."""


class CallKey(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The `Idempotency-Key` of a call: the same call made again under it is answered with the outcome of the first."""

    key: str
    keeps_output: bool = False
    """The output is kept for that answer (manifest `idempotency.keep_output`)."""


class Entered(msgspec.Struct, frozen=True):
    """`is_fresh` False: this proof has been used before. `epoch` is the one in force."""

    is_fresh: bool
    epoch: int


class UseProof(FrontOperation[Entered], frozen=True):
    """Use a proof once."""

    proof: ProofRecord


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
    """The `violation` of a Result that succeeded; its event has it, too."""
    failure: CallFailure | None = None
    """Why the call failed; its event has it, too. None after success."""


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """The call is refused with this code of the interface, and the event says so. `cause` is for the log."""

    code: str
    cause: str | None = None
    retry_after: int | None = None
    quota: str | None = None
    """The limit of its principal (ipc/configuration/quotas.py) that is reached."""
    held: ApprovalRecord | None = None
    """The same call is held already: it is answered with this hold, and the event says so."""
    deny_reason: str | None = None
    """Why a cap denies the call, for its caller."""


class RepeatedCall(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The same call was made before under its key. It is answered with the outcome of that one, and the event says
    so."""

    call_id: str
    """The id of its intent, or of its approval if it was held."""
    code: str | None = None
    """The error code; None where `held` or `closed` is the answer."""
    trace_id: str = ""
    closed: Closed | None = None
    """It ran. Without a code this is the answer, with its kept output if it succeeded."""
    held: ApprovalRecord | None = None
    """It waits for a person."""
    deny_reason: str | None = None
    intent_id: str | None = None
    """The intent of a call that has no receipt, where this ledger has it."""


class NoSuchWorker(msgspec.Struct, frozen=True, tag=True):
    """The worker is gone. Neither ledger nor store changed: the call may be opened with another one."""


class Unbegun(msgspec.Struct, frozen=True, tag=True):
    """The intent is durable, and its worker will not run it: it ended, or was busy for too long, before it began. The
    call is given to another worker (Assign), or withdrawn."""


class HeldByCap(msgspec.Struct, frozen=True, tag=True):
    """The call would go above the `hold_above` of a cap, or its standing approval covers it no more. Neither ledger nor
    store changed: the front asks Hold."""


CallEnd = Closed | Refusal | NoSuchWorker | Unbegun | HeldByCap | RepeatedCall


class Open(FrontOperation[CallEnd], frozen=True):
    """Use the proof, look at the epoch, debit the budget, write the intent, sign the grant: all or nothing. Then have
    the worker run its plan, and write receipt and event, resolve the intent, end its approval and queue deliveries.

    `event` holds the fields that are known so far; the notary adds the others. `Begun` says that the intent is durable.
    The answer follows when the call has ended. With a problem and `is_begun` the intent stays unresolved.
    """

    intent_id: str
    """New with each Open, so that a front which got no answer can still withdraw it. A used id is refused."""
    event: AuditEvent
    terms: GrantTerms
    worker_id: str
    """Has the plan, or will have it in a moment."""
    proof: ProofRecord | None = None
    has_budget: bool = False
    approver: Approver | None = None
    wants_begun: bool = False
    """The front waits for `Begun`. Without it `Begun` is sent only when the call takes long."""
    calls_per_hour: int | None = None
    """The limit of its principal (ipc/configuration/quotas.py). A call with an approver was counted when it was
    held."""
    kept: KeptValues | None = None
    """Values of the request, to stand beside the ledger with commitments in the event."""
    caps: tuple[CapUse, ...] = ()
    """The caps that it counts for. A call with an approver takes over what its hold has reserved."""
    idempotency: CallKey | None = None
    """Only for a call without an approver: a held call has its key with its hold."""
    standing: StandingUse | None = None
    """The call would be held, and this standing approval lets it run. It lifts the holds of caps, too."""


class Assign(FrontOperation[CallEnd], frozen=True):
    """Have another worker run a call that was answered with Unbegun. Continues as Open does from there on."""

    intent_id: str
    worker_id: str
    wants_begun: bool = False


class Recall(FrontOperation[None], frozen=True):
    """Take this call back from its worker if the worker has not begun it. Its Open is then answered with Unbegun.

    Recall itself gets no answer.
    """

    intent_id: str


class Withdrawn(msgspec.Struct, frozen=True):
    """`is_abandoned`: nothing was executed, and the event says so."""

    is_abandoned: bool


class Withdraw(FrontOperation[Withdrawn], frozen=True):
    """The front gives a call up. If its worker has no word yet, the intent is resolved without a receipt, the call is
    given back to the budget, and the event is written. Any other call ends as cut as soon as its worker ends, which the
    front has killed.

    The problem is "refused" when the intent is not open.
    """

    intent_id: str
    decision: str
    error_code: str
    reason: str | None = None
    failure: CallFailure | None = None


class WrittenRefusal(msgspec.Struct, frozen=True):
    """`is_replay`: the proof had been used before. `held`: the same call is held already, and this is its hold.
    `repeated`: the same call was made before under its key."""

    is_replay: bool = False
    held: ApprovalRecord | None = None
    repeated: RepeatedCall | None = None


class Refuse(FrontOperation[WrittenRefusal], frozen=True):
    """Write the one event of a refused call, and use its proof.

    A proof that was used already turns it into `replay_detected`. With `unless_held`, a call that is held already is
    answered with its hold, and nothing is refused. With a key, a call that was made before is answered with its
    outcome.
    """

    event: AuditEvent
    proof: ProofRecord | None = None
    unless_held: bool = False
    kept: KeptValues | None = None
    """As in Open."""
    idempotency: CallKey | None = None
    unanswered: str | None = None
    """Id of the intent or the approval of an operation of this call that had no answer. If that operation was
    performed, the call has its evidence, or its intent is still to end: nothing is written then."""
