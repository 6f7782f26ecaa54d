"""Plans, calls and words for tests of workers."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from ipc.configuration.secret_ways import AsHeader
from ipc.messages.attesting import Permit
from ipc.messages.calling import Call
from ipc.plan import CallLimits, FileAccess, Plan, PlanEgress, PlannedRequest, SecretUse, seal

ROOT = Path(__file__).resolve().parents[2]
BUILTINS = ROOT / "workers" / "providers"
PROBES = ROOT / "tests" / "providers" / "fixtures"


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def builtin(name: str) -> bytes:
    """Bytes of a built-in provider, or of a probe."""
    folder = PROBES if name.endswith("_probe") else BUILTINS
    return (folder / f"{name}.wasm").read_bytes()


def make_plan(**changes: Any) -> Plan:
    """A compute plan for `echo`; `changes` replace fields. `provider_input` follows `request` unless given."""
    request = changes.get("request", "{}")
    values: dict[str, Any] = {
        "trace_id": "trc_1", "action_id": "act", "action_version": "1.0.0", "risk_level": "low",
        "provider_module_digest": digest_of(builtin("echo")), "required_imports": (), "profile": "compute",
        "isolation": "pooled", "principal": "p", "owner": None, "session_id": "ses_1", "scopes": ("tools:call",),
        "lease_jti": "lea_1", "request": request, "request_hash": digest_of(request.encode()),
        "provider_input": request, "limits": CallLimits(timeout_seconds=600.0), "egress": PlanEgress(), "files": None,
        "http_request": None, "secrets": (), "targets": (), "sinks": (), "unresolved_domains": (),
        "unresolved_paths": (), "verifier_kind": "none", "verification_config": "{}", "response_schema": None,
        "enforce_response_schema": True, "max_response_bytes": 1_048_576, "policy_version": "1", "policy_rule": "r",
        "calls_remaining": None, "epoch": 3, "created_at": "2026-11-21T00:00:00.000Z",
    }  # fmt: skip
    return Plan(**(values | changes))


def plan_for(name: str, request: object, **changes: Any) -> Plan:
    """A plan for a built-in provider or a probe."""
    return make_plan(provider_module_digest=digest_of(builtin(name)), request=text(request), **changes)


def endless_plan() -> Plan:
    """A plan that computes until its worker is killed."""
    limits = CallLimits(fuel=2**62, timeout_seconds=3600.0)
    return plan_for("spin", {"seconds": 3600}, required_imports=("clock",), limits=limits)


def call_of(plan: Plan, call_id: str = "c1") -> Call:
    """A call with all the time that its plan has."""
    return Call(call_id, seal(plan).encoded, plan.limits.timeout_seconds)


def word_for(plan: Plan, call_id: str = "c1", **changes: Any) -> Permit:
    """The notary's word that this very plan may run; `changes` replace fields."""
    values: dict[str, Any] = {"plan_hash": seal(plan).digest, "is_approved": False}
    return Permit(call_id, **(values | changes))


def http_plan(url_host: str = "upstream.test", address: str | None = None, **changes: Any) -> Plan:
    """A plan of the http profile for `http_probe`, allowed to GET and POST to one host that leads to `address`."""
    egress = PlanEgress(
        profile="direct_allowlist", allowed_domains=(url_host,), allowed_methods=("GET", "POST", "HEAD"),
        unsafe_resolve={url_host: address} if address else {},
    )  # fmt: skip
    values: dict[str, Any] = {
        "profile": "http", "required_imports": ("http",), "egress": egress,
        "provider_module_digest": digest_of(builtin("http_probe")),
    }  # fmt: skip
    return make_plan(**(values | changes))


def post_plan(address: str, *, path: str = "/x", secrets: tuple[str, ...] = ()) -> Plan:
    """A plan of the http profile for the built-in `http`: one POST, with a header `x-NAME` for each secret."""
    planned = PlannedRequest("POST", f"http://upstream.test{path}", (), "{}")
    call = {"method": "POST", "url": planned.url, "headers": [], "body": "{}"}
    return http_plan(
        address=address, provider_module_digest=digest_of(builtin("http")), http_request=planned,
        provider_input=text({"request": {}, "call": call}), verifier_kind="http_status",
        secrets=tuple(SecretUse(name, way=AsHeader(f"X-{name}"), domains=("upstream.test",)) for name in secrets),
    )  # fmt: skip


def write_plan(root: Path, path: str, content: str = "x") -> Plan:
    """A plan of the fs profile that writes one file."""
    return file_plan(root, request=text({"path": path, "content": content}), verifier_kind="fs_hash")


def file_plan(root: Path, **changes: Any) -> Plan:
    """A plan of the fs profile for `file_write` below `root`."""
    values: dict[str, Any] = {
        "profile": "fs", "required_imports": ("fs",), "files": FileAccess(
            root=str(root), allowed_operations=("read", "write", "append", "list", "stat", "delete"),
            allowed_paths=("**",),
        ),
        "provider_module_digest": digest_of(builtin("file_write")),
    }  # fmt: skip
    return make_plan(**(values | changes))


def text(value: Any) -> str:
    """JSON text of a value."""
    return msgspec.json.encode(value).decode()
