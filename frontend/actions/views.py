"""The views of an action in discovery (docs/contract.md, "Action summary" and "Action manifest").

Summaries hold no digests, schemas or secrets; manifests hold names of secrets, never how or with what value they are
added. Extra fields are those of docs/decisions/clients.md, "Discovery and results".
"""

from typing import Any

import msgspec

from frontend.manifests.manifest import EgressRules, Manifest


def summary(manifest: Manifest) -> dict[str, Any]:
    """One item of the list of actions."""
    return {
        "action_id": manifest.action_id,
        "version": manifest.version,
        "risk_level": manifest.risk_level,
        "description": manifest.description,
        "database_mode": None,
    }


def manifest_view(manifest: Manifest, digest: str, sinks: tuple[str, ...]) -> dict[str, Any]:
    """The full manifest as agents see it. `digest` is that of the module's bytes, empty when it did not load."""
    io = manifest.io
    return summary(manifest) | {
        "tags": list(manifest.tags),
        "provider_module": manifest.provider_module_digest,
        "provider_module_digest": digest or manifest.provider_module_digest,
        "required_imports": list(manifest.required_imports),
        "required_scopes": list(manifest.required_scopes),
        "resource_limits": msgspec.to_builtins(manifest.limits),
        "request_schema": io.request_schema,
        "response_schema": io.response_schema,
        "io": {
            "has_request_schema": io.request_schema is not None,
            "has_response_schema": io.response_schema is not None,
            "max_request_bytes": io.max_request_bytes,
            "max_response_bytes": io.max_response_bytes,
        },
        "egress": _egress(manifest.egress),
        "secrets": [{"name": secret.name, "required": secret.required} for secret in manifest.secrets],
        "declared_side_effects": list(manifest.declared_side_effects),
        "sinks": list(sinks),
        "policy_input": list(manifest.policy_input),
        "verifier_kind": manifest.verifier_kind,
        "isolation": manifest.isolation,
    }


def _egress(rules: EgressRules) -> dict[str, Any]:
    """`profile` and `allowed_domains`; public clients read restricted egress from a member `proxy_allowlist`, whatever
    enforces it, and take its absence for no egress at all."""
    shown: dict[str, Any] = {"profile": rules.profile, "allowed_domains": list(rules.allowed_domains)}
    if rules.profile != "none":
        shown["proxy_allowlist"] = {"allowed_domains": list(rules.allowed_domains)}
    return shown
