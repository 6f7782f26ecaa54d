"""Questions that a candidate policy must be able to answer before it may be used.

Compilation finds less than a run does: conflicts, undefined decisions and wrong types only show when rules fire. The
probes are made from the policy's own data, so that its rules do fire. Never judges what was decided, only that it is a
decision.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from workers.rego.diagnostics import error_of_answer
from workers.rego.evaluator import CompiledPolicy, EvaluationError, PolicyError
from workers.rego.values import NotAValue


class _Document(msgspec.Struct):
    """Shape of a decision document; the front parses answers for itself."""

    allow: bool
    requires_approval: bool
    deny_reason: str
    rule: str
    allowed_sinks: list[str]
    policy_version: str


_decoder = msgspec.json.Decoder(_Document, strict=True)


def probe(candidate: CompiledPolicy, data: str, deadline: AbstractContextManager[None]) -> None:
    """Ask every probe, each inside `deadline`. Raises PolicyError for the first that is not decided."""
    for asked, document in probe_inputs(data):
        try:
            with deadline:
                answer = candidate.evaluate(document)
        except (EvaluationError, NotAValue) as error:
            raise PolicyError([f'asked about "{asked}" it gives no decision: {error}']) from None
        problem = shape_problem(answer)
        if problem is not None:
            raise PolicyError([f'asked about "{asked}" it answers wrongly: {error_of_answer(answer) or problem}'])


def shape_problem(document: str) -> str | None:
    """The problem of a decision document, or None."""
    try:
        _decoder.decode(document)
    except (msgspec.DecodeError, UnicodeError) as error:
        return str(error).replace("`$`", "the decision").replace("`$.", "`decision.")
    return None


def probe_inputs(data: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(what is asked, input document), the most ordinary question first."""
    principal, action, sinks = _first_grant(json.loads(data))
    base: dict[str, Any] = {
        "principal": principal, "owner": None, "identity_method": "peercred", "identity_issuer": None,
        "identity_subject": None, "token_binding": None, "action_id": action, "action_version": "1.0.0",
        "action_risk_level": "low", "action_trust_verdict": "digest_ok", "scopes": ["tools:call"],
        "required_scopes": ["tools:call"], "requested_sinks": sinks, "requested_secrets": [], "egress_profile": "none",
        "targets": [], "unresolved_domains": [], "unresolved_paths": [], "fs_path": None,
        "budgets_before": {"calls_remaining": 3}, "request_hash": "sha256:" + "0" * 64, "request": {},
    }  # fmt: skip
    yield f"{principal} calls {action}", base
    variations: dict[str, dict[str, Any]] = {
        "an unknown principal": {"principal": "probe:nobody", "owner": "probe"},
        "an untrusted module": {"action_trust_verdict": "mismatch"},
        "a critical action": {"action_risk_level": "critical"},
        "a missing scope": {"scopes": []},
        "no budget": {"budgets_before": {"calls_remaining": None}},
        "a spent budget": {"budgets_before": {"calls_remaining": 0}},
        "an unknown sink": {"requested_sinks": ["probe_sink"]},
        "an unresolved domain": {"unresolved_domains": ["probe.example"], "targets": ["GET https://probe.example/"]},
        "an unresolved path": {"unresolved_paths": ["probe/file"], "fs_path": "probe/file"},
    }
    for name, change in variations.items():
        yield name, base | change


def _first_grant(data: Any) -> tuple[str, str, list[str]]:
    """A principal, an action it may call and its sinks, from the default policy's data where it is like that."""
    acl = data.get("acl") if isinstance(data, dict) else None
    for principal, entry in acl.items() if isinstance(acl, dict) else ():
        actions = entry.get("actions") if isinstance(entry, dict) else None
        if isinstance(actions, list) and actions and isinstance(actions[0], str):
            sinks = entry.get("sinks")
            return principal, actions[0], list(sinks) if isinstance(sinks, list) else []
    return "probe:nobody", "probe_action", []
