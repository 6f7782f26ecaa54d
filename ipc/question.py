"""The fields of what policy is asked, `input` in its rules (docs/policy.md).

The front makes every question of exactly these fields (frontend/policy/question.py); the policy process refuses rules
that read any other. Holds names and kinds only.
"""

from typing import Final

TEXT: Final = "a text"
TEXT_OR_NULL: Final = "a text or null"
TEXTS: Final = "a list of texts"
BUDGET: Final = "an object with calls_remaining"
VALUES: Final = "an object of texts, numbers, truth values, nulls and lists of these, by JSON pointer"

FIELDS: Final[dict[str, str]] = {
    "principal": TEXT,
    "owner": TEXT_OR_NULL,
    "identity_method": TEXT,
    "identity_issuer": TEXT_OR_NULL,
    "identity_subject": TEXT_OR_NULL,
    "token_binding": TEXT_OR_NULL,
    "action_id": TEXT,
    "action_version": TEXT,
    "action_risk_level": TEXT,
    "action_trust_verdict": TEXT,
    "scopes": TEXTS,
    "required_scopes": TEXTS,
    "requested_sinks": TEXTS,
    "requested_secrets": TEXTS,
    "egress_profile": TEXT,
    "targets": TEXTS,
    "unresolved_domains": TEXTS,
    "unresolved_paths": TEXTS,
    "fs_path": TEXT_OR_NULL,
    "budgets_before": BUDGET,
    "request_hash": TEXT,
    "request": VALUES,
}
"""Field -> what stands there, in words. Every field is always there."""

MEMBERS: Final[dict[str, tuple[str, ...]]] = {BUDGET: ("calls_remaining",)}
"""Kind -> its members by name; those of every other kind have none."""
