"""Manifests of each kind as YAML text, and what it takes to make a registry of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from frontend.actions.modules import module_files
from frontend.actions.registry import Action, Registry
from frontend.actions.trust import Trusted
from frontend.auth.lease import Lease
from frontend.files.problems import FileProblem, Report
from frontend.manifests.manifest import Manifest
from frontend.manifests.reading import manifest_of, read_bytes
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.messages.modules import ModuleVerdict
from ipc.settings import Settings

DIGEST = "sha256:" + "ab" * 32

COMPUTE: dict[str, Any] = {
    "action_id": "text_digest",
    "version": "1.0.0",
    "provider_module_digest": "builtin:text_digest",
    "risk_level": "low",
    "io": {
        "request_schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        }
    },
}
HTTP: dict[str, Any] = {
    "action_id": "http_post",
    "version": "1.0.0",
    "provider_module_digest": "builtin:http",
    "required_imports": ["http"],
    "declared_side_effects": ["http_write"],
    "io": {
        "request_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "message": {"type": "string"}, "q": {"type": "string"}},
            "required": ["path"],
        }
    },
    "egress": {"profile": "direct_allowlist", "allowed_domains": ["api.example.com"], "allowed_methods": ["POST"]},
    "template": {
        "method": "POST",
        "url_template": "https://api.example.com/{+path}?q={q}",
        "headers": {"X-Kind": "post"},
        "body_template": {"message": "{message}", "fixed": [1, None]},
    },
    "secrets": [{"name": "token", "inject": {"header": "Authorization", "format": "Bearer {value}"}}],
}
FILES: dict[str, Any] = {
    "action_id": "file_write",
    "version": "1.0.0",
    "provider_module_digest": "builtin:file_write",
    "required_imports": ["fs"],
    "declared_side_effects": ["fs_write"],
    "io": {
        "request_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        }
    },
    "fs": {"allowed_operations": ["write"], "allowed_paths": ["notes/**"], "denied_paths": ["notes/private/**"]},
}
TOOL: dict[str, Any] = {
    "action_id": "files_read",
    "version": "1.0.0",
    "provider_module_digest": "builtin:mcp",
    "required_imports": ["http"],
    "io": {"request_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
    "egress": {"profile": "direct_allowlist", "allowed_domains": ["mcp.example.com"], "allowed_methods": ["POST"]},
    "mcp": {"url": "https://mcp.example.com/mcp", "tool": "read_text_file", "tool_digest": DIGEST},
    "secrets": [{"name": "token", "inject": {"header": "Authorization", "format": "Bearer {value}"}}],
    "verifier_kind": "unverifiable",
}
KINDS = {"compute": COMPUTE, "http": HTTP, "files": FILES, "tool": TOOL}

Change = dict[str, Any]


def merged(base: Any, change: Any) -> Any:
    """`base` with the members of `change`; None removes one."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    members = {**base, **{name: merged(base.get(name), value) for name, value in change.items()}}
    return {name: value for name, value in members.items() if value is not None}


def read(data: bytes, *, has_proxy: bool = False) -> tuple[Manifest | None, list[FileProblem]]:
    report = Report("action.yaml")
    tree = read_bytes(data, report)
    manifest = manifest_of(tree, report, has_proxy=has_proxy) if tree else None
    return manifest, report.problems


Read = Callable[..., tuple[Manifest | None, list[FileProblem]]]
"""The types of the fixtures `read_text` and `read_kind`."""


def assert_refused(read: tuple[Manifest | None, list[FileProblem]], field: str, words: str) -> None:
    """No manifest, and among its problems one of this field with these words; each has a place and a way out."""
    manifest, problems = read
    assert manifest is None
    assert any(problem.field == field and words in str(problem) for problem in problems), [str(p) for p in problems]
    assert all(problem.line > 0 and problem.mend for problem in problems)


@pytest.fixture
def read_text() -> Callable[..., tuple[Manifest | None, list[FileProblem]]]:
    return lambda text, **options: read(text.encode(), **options)


@pytest.fixture
def read_kind() -> Callable[..., tuple[Manifest | None, list[FileProblem]]]:
    """read_kind("http", {"egress": {"profile": "none"}}): the manifest of that kind, changed."""

    def make(kind: str, change: Change | None = None, **options: bool) -> tuple[Manifest | None, list[FileProblem]]:
        return read(yaml.safe_dump(merged(KINDS[kind], change or {}), sort_keys=False).encode(), **options)

    return make


@pytest.fixture
def manifest_of_kind(read_kind: Callable[..., tuple[Manifest | None, list[FileProblem]]]) -> Callable[..., Manifest]:
    def make(kind: str, change: Change | None = None, **options: bool) -> Manifest:
        manifest, problems = read_kind(kind, change, **options)
        assert manifest is not None, [str(problem) for problem in problems]
        return manifest

    return make


def verdicts_for(manifests: list[Manifest], verdict: str = "ok") -> list[ModuleVerdict]:
    """The answer of a template process; each built-in module has a digest of its own."""
    files = module_files(manifests, Path("/modules"))
    return [ModuleVerdict(file.reference, verdict, file.reference if file.path else DIGEST, "") for file in files]


@pytest.fixture
def action_of(manifest_of_kind: Callable[..., Manifest]) -> Callable[..., Action]:
    def make(kind: str, change: Change | None = None, **options: bool) -> Action:
        manifest = manifest_of_kind(kind, change, **options)
        action = Registry.build([manifest], verdicts_for([manifest]), Trusted()).get(manifest.action_id)
        assert action is not None
        return action

    return make


@pytest.fixture
def build_registry() -> Callable[..., Registry]:
    return lambda manifests, trusted=None: Registry.build(manifests, verdicts_for(manifests), trusted or Trusted())


@pytest.fixture
def lease() -> Lease:
    return Lease(
        session_id="ses_1", principal="agent", owner="team", scopes=("tools:call",), jti="lea_1", jkt="jkt", epoch=3,
        exp=2_000_000_000, has_budget=True, origin=IdentityOrigin("peercred"),
    )  # fmt: skip


@pytest.fixture
def settings() -> Settings:
    base = Settings(state_dir="/var/lib/gateway", public_base_url="http://localhost")
    return msgspec.structs.replace(base, egress_proxy_url="http://proxy.example.com:3128")
