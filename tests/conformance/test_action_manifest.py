"""Action manifest: GET /v1/actions/{action_id}."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row, rows
from tests.conformance.proxied import Proxied
from tests.conformance.shapes import RISKS, is_integer, is_sha256
from tests.support.upstream import Upstream

View = dict[str, Any]


@pytest.fixture(scope="module")
def manifest(gate: Deployment) -> View:
    """The manifest of an action that has everything a manifest can have."""
    fields = gate.client.get("/v1/actions/http_post").json()
    assert fields["action_id"] == "http_post"
    return dict(fields)


@rows(
    "action-manifest",
    {
        "provider-module": lambda one: (
            one["provider_module"] == "builtin:http" and is_sha256(one["provider_module_digest"])
        ),
        "required-imports": lambda one: one["required_imports"] == ["http"],
        "resource-limits": lambda one: isinstance(one["resource_limits"], dict),
        "request-schema": lambda one: one["request_schema"]["required"] == ["path", "message"],
        "egress-profile": lambda one: (
            (one["egress"]["profile"], one["egress"]["allowed_domains"])
            == ("direct_allowlist", ["upstream.gateway.test"])
        ),
        "risk-level": lambda one: one["risk_level"] in RISKS,
        "side-effects": lambda one: one["declared_side_effects"] == ["http_write"] == one["sinks"],
        "verifier-kind": lambda one: one["verifier_kind"] == "http_status",
    },
)
def test_the_manifest_has_it(manifest: View, case: Callable[[View], bool]) -> None:
    assert case(manifest)


@rows(
    "action-manifest",
    {f"limit-{name}": name for name in ("fuel", "memory_mb", "timeout_seconds", "max_io_calls")},
)
def test_the_limits_have_the_key(manifest: View, case: str) -> None:
    value = manifest["resource_limits"][case]
    assert is_integer(value) or (case == "timeout_seconds" and isinstance(value, float))


@row("action-manifest/secrets", "action-manifest/secret-required")
def test_secrets_are_declared_and_never_told(gate: Deployment, manifest: View) -> None:
    values = json.loads(gate.secrets.read_text())
    assert [(one["name"], one["required"]) for one in manifest["secrets"]] == [("upstream_token", True)]
    assert values["upstream_token"] not in str(manifest)


@row("action-manifest/egress-proxy_allowlist")
def test_an_action_may_go_out_through_the_proxy(proxied: Proxied, up: Upstream) -> None:
    manifest = proxied.gate.client.get("/v1/actions/proxied_fetch").json()
    assert manifest["egress"]["profile"] == "proxy_allowlist"
    answer = proxied.gate.agent().execute("proxied_fetch", {"path": "by-proxy"})
    assert (answer.status_code, answer.json()["verification_outcome"]) == (200, "verified")
    proxied.was_asked(200, "proxied_fetch")
    assert not {"via", "x-forwarded-for", "forwarded"} & set(up.seen[-1].headers)
