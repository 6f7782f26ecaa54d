"""Plans for tests that need one and do not care which."""

from typing import Any

from ipc.plan import CallLimits, Plan, PlanEgress


def a_plan(**changes: Any) -> Plan:
    """A small plan; `changes` replace fields."""
    whole: dict[str, Any] = {
        "trace_id": "trc_1",
        "action_id": "a",
        "action_version": "1.0.0",
        "risk_level": "low",
        "provider_module_digest": "sha256:00",
        "required_imports": (),
        "profile": "compute",
        "isolation": "pooled",
        "principal": "p",
        "owner": None,
        "session_id": "ses_1",
        "scopes": ("tools:call",),
        "lease_jti": "lea_1",
        "request": "{}",
        "request_hash": "sha256:11",
        "provider_input": "{}",
        "limits": CallLimits(),
        "egress": PlanEgress(),
        "files": None,
        "http_request": None,
        "secrets": (),
        "targets": (),
        "sinks": (),
        "unresolved_domains": (),
        "unresolved_paths": (),
        "verifier_kind": "none",
        "verification_config": "{}",
        "response_schema": None,
        "enforce_response_schema": True,
        "max_response_bytes": 1000,
        "policy_version": "1",
        "policy_rule": "allow",
        "calls_remaining": None,
        "epoch": 0,
        "created_at": "2026-01-01T00:00:00.000Z",
    }
    return Plan(**(whole | changes))
