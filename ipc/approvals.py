"""Approvals as front and notary both know them: states and their moves, the plan that is kept, the part that grows.

The notary moves an approval only by compare-and-swap along MOVES, so that of any number of operators and of the clock
exactly one wins.
"""

import re
from functools import cached_property
from typing import Final, Self

import msgspec

from ipc.caps import CapUse
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.configuration.quorum import GivenApproval, Quorum
from ipc.plan import CallLimits, FileAccess, Plan, PlanEgress, SealedPlan, SecretUse, unseal

PENDING: Final = "pending"
CLAIMED: Final = "claimed"
APPROVED: Final = "approved"
DENIED: Final = "denied"
EXPIRED: Final = "expired"
FAILED: Final = "failed"

MOVES: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        (PENDING, CLAIMED),  # an operator's approve or deny won the race
        (PENDING, EXPIRED),  # five minutes without a decision, or its epoch was revoked
        (CLAIMED, APPROVED),  # the stored plan was dispatched
        (CLAIMED, DENIED),  # an operator denied it
        (CLAIMED, FAILED),  # the plan could not be executed, or the gateway stopped before dispatch
    }
)

ENDED: Final = frozenset({APPROVED, DENIED, EXPIRED, FAILED})

TTL_SECONDS: Final = 300.0
"""A pending approval's life; a fixed constant (docs/contract.md, "Limits")."""


class HeldBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """The immutable part: the plan as it will run, and how the call came to be held."""

    encoded: msgspec.Raw = msgspec.field(name="plan")
    """The plan's bytes, as they were hashed."""
    plan_hash: str
    identity_method: str
    has_budget: bool
    description: str | None = None
    """The action's description when the call was held; None if it had none, or if an earlier version held the call."""
    summary: str | None = None
    """The line of kept values that lists show of it; None for an action whose manifest has no `summary`."""
    caps: tuple[CapUse, ...] = ()
    """The caps that the call counts for."""
    keyed: bool | None = None
    """Given for a call that was made under an `Idempotency-Key`: True if its output is kept."""
    quorum: Quorum | None = None
    """The approvals that the call needs; None: one, by any operator. Fixed when the call is held."""
    identity_issuer: str | None = None
    """The issuer of the token by which the caller is known."""
    identity_subject: str | None = None
    """The subject of that token."""
    token_binding: str | None = None
    """`bearer` or `dpop`."""

    @classmethod
    def of(
        cls, sealed: SealedPlan, origin: IdentityOrigin, *, has_budget: bool, description: str | None = None,
        summary: str | None = None, caps: tuple[CapUse, ...] = (), keyed: bool | None = None,
        quorum: Quorum | None = None,
    ) -> Self:  # fmt: skip
        """The body of a call that is held now."""
        encoded = msgspec.Raw(sealed.encoded)
        return cls(
            encoded, sealed.digest, origin.method, has_budget, description, summary, caps, keyed, quorum,
            origin.issuer, origin.subject, origin.binding,
        )  # fmt: skip

    @property
    def origin(self) -> IdentityOrigin | None:
        """How the call's caller is known; None if it was held by a version that did not say."""
        if not self.identity_method:
            return None
        return IdentityOrigin(self.identity_method, self.identity_issuer, self.identity_subject, self.token_binding)

    @cached_property
    def sealed(self) -> SealedPlan:
        """The stored plan, decoded once. Raises ValueError."""
        return unseal(bytes(self.encoded))

    @property
    def plan(self) -> Plan:
        """The stored plan. Raises ValueError."""
        return self.sealed.plan

    @property
    def is_intact(self) -> bool:
        """True if the stored bytes still have the hash that is stored beside them."""
        return self.sealed.digest == self.plan_hash


class DecisionOutcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part that grows: the deciding operator, the times (ISO 8601), and the result."""

    claimed_by: str | None = None
    claimed_at: str | None = None
    completed_at: str | None = None
    receipt_id: str | None = None
    deny_reason: str | None = None
    error_code: str | None = None
    approval_signature: str | None = None
    """The signature of the operator who claimed it, as it was sent (ipc/keys/signed_approvals.py)."""
    approvals: tuple[GivenApproval, ...] = ()
    """The approvals given so far to a hold that needs several, the first one first."""


def encoded_outcome(outcome: DecisionOutcome) -> str:
    """JSON text for the store."""
    return msgspec.json.encode(outcome).decode()


class Listed(msgspec.Struct, frozen=True):
    """The fields of a plan that a list shows. The others, perhaps megabytes, are skipped and not decoded."""

    action_version: str | None = None
    principal: str | None = None
    owner: str | None = None
    risk_level: str | None = None


class Summary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A body as a list has it."""

    plan: Listed = Listed()
    summary: str | None = None
    quorum: Quorum | None = None


_body = msgspec.json.Decoder(HeldBody).decode


def read_body(text: str) -> HeldBody:
    """A stored body, with a plan that can be read. Raises ValueError for anything else."""
    try:
        body = _body(text)
    except RecursionError as error:
        raise ValueError(str(error)) from None
    _ = body.sealed
    return body


_summary = msgspec.json.Decoder(Summary).decode


def summary_of(body: str) -> Summary:
    """Empty for a body that can't be read: the rest of its approval still shows."""
    try:
        return _summary(body)
    except (ValueError, RecursionError):
        return Summary()


def listed(body: str) -> str:
    """A body cut to what a list shows of it, JSON text."""
    return msgspec.json.encode(summary_of(body)).decode()


class RemainingPlan(msgspec.Struct, frozen=True):
    """The fields of a plan that do not come from its request."""

    trace_id: str = ""
    action_version: str | None = None
    risk_level: str | None = None
    provider_module_digest: str = ""
    principal: str | None = None
    owner: str | None = None
    limits: CallLimits = CallLimits()
    egress: PlanEgress = PlanEgress()
    files: FileAccess | None = None
    """Without the path that the request has named."""
    secrets: tuple[SecretUse, ...] = ()
    targets: tuple[str, ...] = ()
    """Method and host, or the operation on files: what the request has filled in beyond that is cut off."""
    sinks: tuple[str, ...] = ()
    unresolved_domains: tuple[str, ...] = ()
    verifier_kind: str = ""
    policy_version: str = ""
    policy_rule: str = ""
    calls_remaining: int | None = None
    epoch: int = -1
    """-1: nothing says which; no epoch that is ever in force."""
    created_at: str = ""


class Remains(msgspec.Struct, frozen=True):
    """The part of a body that is kept once its approval has ended: all but the request. A whole body decodes, too."""

    plan: RemainingPlan = RemainingPlan()
    plan_hash: str | None = None
    identity_method: str = ""
    has_budget: bool = False
    description: str | None = None
    quorum: Quorum | None = None


_remains = msgspec.json.Decoder(Remains).decode


def read_remains(body: str) -> Remains:
    """The remains of a whole or a reduced body; empty if it can't be read."""
    try:
        return _remains(body)
    except (ValueError, RecursionError):
        return Remains()


def remains_of(body: str) -> str:
    """A body without the request and everything that the request filled in, JSON text."""
    kept = read_remains(body)
    places, files = tuple(_place(target) for target in kept.plan.targets), kept.plan.files
    if files is not None:  # the one path that the plan allows is the request's
        files = msgspec.structs.replace(files, allowed_paths=())
    kept = msgspec.structs.replace(kept, plan=msgspec.structs.replace(kept.plan, targets=places, files=files))
    return msgspec.json.encode(kept).decode()


def _place(target: str) -> str:
    """`POST https://host/path` -> `POST https://host`; `fs:write path` -> `fs:write`."""
    what, _, where = target.partition(" ")
    scheme, mark, rest = where.partition("://")
    return f"{what} {scheme}{mark}{re.split('[/?#]', rest, maxsplit=1)[0]}" if mark else what
