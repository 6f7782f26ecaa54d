import json
from collections.abc import Callable

import pytest
from latchgate import EgressProfile

from frontend.actions.registry import Registry
from frontend.manifests.manifest import Manifest

ManifestOf = Callable[..., Manifest]
Build = Callable[..., Registry]


def test_a_summary_has_the_fields_of_the_interface_and_no_more(
    manifest_of_kind: ManifestOf, build_registry: Build
) -> None:
    registry = build_registry([manifest_of_kind("http", {"description": "Posts."})])
    assert registry.summaries() == [
        {
            "action_id": "http_post",
            "version": "1.0.0",
            "risk_level": "high",
            "description": "Posts.",
            "database_mode": None,
        }
    ]


def test_a_manifest_view_shows_what_agents_need(manifest_of_kind: ManifestOf, build_registry: Build) -> None:
    registry = build_registry([manifest_of_kind("http")])
    view = json.loads(json.dumps(registry.manifest_view(registry.actions[0])))
    assert view["provider_module"] == "builtin:http"
    assert view["provider_module_digest"] == registry.actions[0].digest
    assert view["required_imports"] == ["http"]
    assert view["resource_limits"] == {"fuel": 10_000_000, "memory_mb": 64, "timeout_seconds": 30.0, "max_io_calls": 10}
    assert view["request_schema"]["required"] == ["path"]
    assert view["egress"]["profile"] == "direct_allowlist"
    assert view["egress"]["allowed_domains"] == ["api.example.com"]
    assert view["secrets"] == [{"name": "token", "required": True}]
    assert view["io"]["has_request_schema"] is True
    assert view["io"]["has_response_schema"] is False
    assert view["response_schema"] is None
    assert view["declared_side_effects"] == ["http_write"]
    assert view["verifier_kind"] == "none"
    assert view["policy_input"] == []
    assert "Bearer" not in json.dumps(view)


def test_a_manifest_view_names_the_values_that_policy_decides_by(
    manifest_of_kind: ManifestOf, build_registry: Build
) -> None:
    registry = build_registry([manifest_of_kind("http", {"policy_input": ["/path"]})])
    assert registry.manifest_view(registry.actions[0])["policy_input"] == ["/path"]


@pytest.mark.parametrize(("kind", "has_egress"), [("http", True), ("compute", False)])
def test_a_public_client_sees_whether_an_action_has_egress(
    manifest_of_kind: ManifestOf, build_registry: Build, kind: str, has_egress: bool
) -> None:
    registry = build_registry([manifest_of_kind(kind)])
    profile = EgressProfile._from_json(registry.manifest_view(registry.actions[0])["egress"])
    assert profile.has_egress is has_egress
    assert profile.allowed_domains == (["api.example.com"] if has_egress else [])
