"""The question for the policy and its answer: the input and the decision document of docs/policy.md.

Guarantees that only a whole, correctly typed decision becomes a Decision; everything else is an engine that failed,
never an allow. Does no I/O.
"""

import json
import re
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from frontend.errors import GateError
from ipc.configuration.quorum import MOST_APPROVALS, MOST_GROUPS, Quorum, needed
from ipc.texts.foreign_texts import clean_reason

_MAX_NAME = 128


class BudgetUnread(Exception):
    """The policy in force may read what is left of the budget, and the question does not say it: ask again with it."""


class Question(msgspec.Struct, frozen=True):
    """One call, as policy sees it (docs/decisions/policy.md, "Policy")."""

    principal: str
    owner: str | None
    identity_method: str
    """peercred, jwt, x509, or in dev mode none; empty for a call that is only supposed."""
    identity_issuer: str | None
    """The issuer of the caller's token; None for a user of this host."""
    identity_subject: str | None
    """The subject of that token, or the name of the caller's certificate."""
    token_binding: str | None
    """bearer or dpop; None for a caller without a token."""
    action_id: str
    action_version: str
    action_risk_level: str
    action_trust_verdict: str
    """digest_ok, mismatch or not_registered."""
    scopes: tuple[str, ...]
    required_scopes: tuple[str, ...]
    requested_sinks: tuple[str, ...]
    requested_secrets: tuple[str, ...]
    egress_profile: str
    targets: tuple[str, ...]
    unresolved_domains: tuple[str, ...]
    unresolved_paths: tuple[str, ...]
    fs_path: str | None
    calls_remaining: int | UnsetType | None
    """None for a lease without budgets. UNSET: not read yet; only a policy that does not read it may decide."""
    request_hash: str
    request: str = "{}"
    """JSON text: the values of the request at the pointers of the manifest's `policy_input`."""

    def as_input(self) -> dict[str, object]:
        """The input document. Every field is always there, so that no rule meets an undefined one."""
        return {
            "principal": self.principal,
            "owner": self.owner,
            "identity_method": self.identity_method,
            "identity_issuer": self.identity_issuer,
            "identity_subject": self.identity_subject,
            "token_binding": self.token_binding,
            "action_id": self.action_id,
            "action_version": self.action_version,
            "action_risk_level": self.action_risk_level,
            "action_trust_verdict": self.action_trust_verdict,
            "scopes": self.scopes,
            "required_scopes": self.required_scopes,
            "requested_sinks": self.requested_sinks,
            "requested_secrets": self.requested_secrets,
            "egress_profile": self.egress_profile,
            "targets": self.targets,
            "unresolved_domains": self.unresolved_domains,
            "unresolved_paths": self.unresolved_paths,
            "fs_path": self.fs_path,
            "budgets_before": {"calls_remaining": None if self.calls_remaining is UNSET else self.calls_remaining},
            "request_hash": self.request_hash,
            "request": {} if self.request == "{}" else json.loads(self.request),
        }


ATTRIBUTES = {
    **{name: name for name in Question.__struct_fields__ if name != "calls_remaining"},
    "budgets_before": "calls_remaining",
}
"""Field of the input document -> attribute of the question that it is made of, and of nothing else."""


class Decision(msgspec.Struct, frozen=True):
    """The decision document. Fields that a policy adds are ignored; a missing or mistyped one is no decision."""

    allow: bool
    requires_approval: bool
    deny_reason: str
    """Cleaned; never empty for a denial, empty otherwise."""
    rule: str
    allowed_sinks: tuple[str, ...]
    policy_version: str
    quorum: Quorum | None = None
    """Optional: the approvals that a call needs which `requires_approval`."""


_decoder = msgspec.json.Decoder(Decision, strict=True)
_FIELDS = len(Decision.__struct_fields__) - 1
"""All but `quorum`: a document with that is looked at for duplicates always."""
_NAME_END = re.compile(r'"\s*:')


def parse_decision(document: str) -> Decision:
    """Return the decision in this JSON text.

    Raises GateError("policy_engine_unavailable") unless every documented field is there once, with its exact type.
    """
    try:
        decision = _decoder.decode(document)
        # Every name is followed by a colon: with as many as there are fields, and every field found, none comes twice.
        if len(_NAME_END.findall(document)) != _FIELDS:
            json.loads(document, object_pairs_hook=_refuse_duplicates)
    except (ValueError, RecursionError) as error:
        raise _no_decision(str(error)) from None
    if not (_is_name(decision.rule) and _is_name(decision.policy_version)):
        raise _no_decision("rule and policy_version must be 1 to 128 printable characters")
    if decision.quorum is not None:
        decision = msgspec.structs.replace(decision, quorum=_quorum(decision.quorum))
    if decision.allow:
        reason = ""
    else:
        reason = clean_reason(decision.deny_reason).strip() or f"denied by rule {decision.rule}"
    return msgspec.structs.replace(decision, deny_reason=reason) if reason != decision.deny_reason else decision


def _quorum(quorum: Quorum) -> Quorum:
    counts = (quorum.count, *quorum.groups.values())
    if not all(1 <= count <= MOST_APPROVALS for count in counts) or len(quorum.groups) > MOST_GROUPS:
        raise _no_decision(f"quorum needs counts of 1 to {MOST_APPROVALS}, and at most {MOST_GROUPS} groups")
    if not all(map(_is_name, quorum.groups)):
        raise _no_decision("names of groups must be 1 to 128 printable characters")
    return needed(quorum.count, quorum.groups)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _MAX_NAME and text.isprintable()


def _no_decision(cause: str) -> GateError:
    return GateError("policy_engine_unavailable", cause=f"not a decision document: {cause}")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> None:
    # SECURITY: two `allow` in one document, and parsers differ over which of them counts.
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name appears twice in one object")
