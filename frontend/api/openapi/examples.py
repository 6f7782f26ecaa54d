"""Example values: one for each name of the interface, so that the same name looks the same wherever it stands."""

from typing import Any

from frontend.api.openapi.schemas import PREFIX

_ID = "01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c"
_DIGEST = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_TIME = "2026-11-21T11:12:13.123Z"
_THUMBPRINT = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"

VALUES: dict[str, Any] = {
    "action_id": "text_digest",
    "action_version": "1.0.0",
    "added_by": "ann",
    "agent_id": "dev:anonymous",
    "allowed_domains": ["upstream.gateway.test"],
    "allowed_methods": ["POST"],
    "approval_hash": _DIGEST,
    "approval_id": f"apr_{_ID}",
    "approved_by": "ann",
    "approved_secrets": ["upstream_token"],
    "approved_targets": ["POST https://upstream.gateway.test/v1/transfers"],
    "body": '{"amount_cents":25000,"to":"acct-7"}',
    "broken_at": None,
    "claimed_by": "ann",
    "crv": "P-256",
    "current_epoch": 4,
    "database_mode": None,
    "declared_side_effects": ["http_write"],
    "denied_by": "ann",
    "deny_reason": "not without a ticket",
    "description": "SHA-256 of a text.",
    "domain": "api.example.com",
    "dpop_jwk": {
        "kty": "EC",
        "crv": "P-256",
        "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
    },
    "effect_evidence": [],
    "egress_proxy": None,
    "error_code": "plan_integrity",
    "event_id": f"evt_{_ID}",
    "event_type": "ActionCall",
    "failure_class": None,
    "grant_id": f"grant_{_ID}",
    "intact": True,
    "intent_id": f"intent_{_ID}",
    "kid": _THUMBPRINT,
    "lease_jti": f"lea_{_ID}",
    "lease_jwt": "eyJhbGciOiJFUzI1NiIs….eyJpc3MiOiJhY3Rpb24t….c2lnbmF0dXJl…",
    "max_calls": 10,
    "name": "upstream_token",
    "normalized_result": {"kind": "success", "summary": "text_digest 1.0.0 executed"},
    "operator_proof_jti": "4f0c1a52-6f0e-4a7a-9d4e-0d6a6f2b9c11",
    "operator_sender_binding": _THUMBPRINT,
    "output": {"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
    "owner": "team-billing",
    "path": "notes/**",
    "path_glob": "notes/**",
    "plan_hash": _DIGEST,
    "policy_input": ["/amount_cents"],
    "policy_rule": "allow",
    "policy_version": "2026-11-20.1",
    "prev_hash": _DIGEST,
    "previous_epoch": 3,
    "principal": "dev:anonymous",
    "provider_module": _DIGEST,
    "provider_module_digest": _DIGEST,
    "provider_receipt": {"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
    "reason": None,
    "receipt_id": f"rcpt_{_ID}",
    "receipt_hash": _DIGEST,
    "receipt_version": 2,
    "receipt_signature": "4f2a… (128 hex digits)",
    "request": {"text": "hello"},
    "request_hash": _DIGEST,
    "request_json": '{"text":"hello"}',
    "request_schema": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
    "required_imports": [],
    "required_scopes": ["tools:call"],
    "result_hash": _DIGEST,
    "scopes": ["tools:call"],
    "session_id": f"ses_{_ID}",
    "signing_key_id": _THUMBPRINT,
    "sinks": ["http_write"],
    "tags": ["example"],
    "trace_id": f"trc_{_ID}",
    "trust_verdict": "digest_ok",
    "unresolved_domains": [],
    "unresolved_paths": [],
    "url": "https://upstream.gateway.test/v1/transfers",
    "method": "POST",
    "headers": [["content-type", "application/json"]],
    "verification_outcome": "unverifiable_declared",
    "verifier_kind": "unverifiable",
    "version": "1.0.0",
    "policy_memo": {"in_use": True, "reason": None, "entries": 12},
    "crash_loops": [],
    "weakened": [],
    "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
    "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
}
"""By the name of a member; where a member of this name has another form somewhere, its own schema decides."""

_AMOUNT = {"action_id": "payment_transfer", "pointer": "/amount_cents"}
_A_DAY = {"per": "principal", "window_seconds": 86400, "hold_above": 5000000}
CHOSEN: dict[str, dict[str, Any]] = {
    "PathForm": {"action_id": "file_write", "path": "notes/**"},
    "PathOfAction": {"action_id": "file_write"},
    "PrincipalActions": {"actions": ["text_digest"]},
    "PrincipalAcl": {"actions": ["text_digest"], "sinks": []},
    "PrincipalView": {"actions": ["text_digest"], "sinks": []},
    "RiskBreakdown": {"low": ["text_digest"], "medium": [], "high": [], "critical": []},
    "DenyRequest": {"reason": "not without a ticket"},
    "EraseForm": {"principal": "dev:anonymous", "reason": "asked for by the person"},
    "ThresholdToSet": _AMOUNT | {"hold_above": 100000},
    "ThresholdView": _AMOUNT | {"hold_above": 100000},
    "CapToSet": _AMOUNT | _A_DAY,
    "CapView": _AMOUNT | _A_DAY,
    "ValueRulesToClear": _AMOUNT,
    "ValueRuleChanged": _AMOUNT,
    "DomainForm": {"action_id": "payment_transfer"},
    "DomainOfAction": {"action_id": "payment_transfer"},
    "LearnedDomain": {"action_id": "payment_transfer"},
    "ApprovalDetail": {"risk_level": "critical", "action_id": "payment_transfer"},
    "AdminStatus": {"status": "ok", "version": "0.1.0", "draining": False},
    "ApprovalPoll": {"state": "pending", "status": "pending"},
    "ListedApproval": {"state": "pending", "status": "pending"},
    "ShownEvent": {"decision": "allow", "timestamp": _TIME},
    "LearnedPath": {"action_id": "file_write"},
    "NotReady": {"status": "not_ready", "redis": False, "approval_store": False},
    "Readiness": {"status": "ready"},
    "CallToPreview": {"request": {"text": "hello"}},
    "RequestPreview": {"headers": {"Authorization": "Bearer <secret upstream_token>"}},
    "ReceiptKey": {"x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
    "Receipt": {"verification_outcome": {"status": "unverifiable_declared"}},
}
"""By the name of a schema: what its members are in its example, where the table of names does not fit."""


def example_of(schema: dict[str, Any], components: dict[str, Any], name: str = "") -> Any:
    """A value that the schema allows; members that may be missing are left out."""
    if name in VALUES and VALUES[name] in schema.get("enum", [VALUES[name]]):
        return VALUES[name]
    reference = schema.get("$ref")
    if reference is not None:
        return _object(components[reference.removeprefix(PREFIX)], components, reference.removeprefix(PREFIX))
    for way in ("anyOf", "oneOf"):
        if way in schema:
            return example_of(schema[way][0], components, name)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return _object(schema, components)
        case "array":
            return [example_of(schema["items"], components)] if schema.get("items") else []
        case "boolean":
            return True
        case "null":
            return None
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "string":
            return _TIME if schema.get("format") == "date-time" or name.endswith("_at") else "text"
    return {}


def _object(schema: dict[str, Any], components: dict[str, Any], title: str = "") -> dict[str, Any]:
    chosen = CHOSEN.get(title, {})
    return {
        name: chosen[name] if name in chosen else example_of(member, components, name)
        for name, member in schema.get("properties", {}).items()
        if name in schema.get("required", ()) or name in chosen
    }
