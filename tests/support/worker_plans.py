"""Plans, grants and calls for tests of workers, signed with a key of their own."""

import base64
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from ipc.messages import Call
from ipc.plan import Egress, FileAccess, Limits, Plan, plan_hash

ROOT = Path(__file__).resolve().parents[2]
BUILTINS = ROOT / "workers" / "providers"
PROBES = ROOT / "tests" / "providers" / "fixtures"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


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
        "provider_input": request, "limits": Limits(timeout_seconds=600.0), "egress": Egress(), "files": None,
        "http_request": None, "secrets": (), "targets": (), "sinks": (), "unresolved_domains": (),
        "unresolved_paths": (), "verifier_kind": "none", "verification_config": "{}", "response_schema": None,
        "enforce_response_schema": True, "max_response_bytes": 1_048_576, "policy_version": "1", "policy_rule": "r",
        "calls_remaining": None, "epoch": 3, "created_at": "2026-11-21T00:00:00.000Z",
    }  # fmt: skip
    return Plan(**(values | changes))


class Signer:
    """Signs grants as the front does; `**changes` replace claims, `header` replaces header fields."""

    def __init__(self, kid: str = "k1") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.kid = kid

    @property
    def jwks(self) -> str:
        numbers = self.key.public_key().public_numbers()
        x, y = (b64(part.to_bytes(32, "big")) for part in (numbers.x, numbers.y))
        return json.dumps({"keys": [{"kty": "EC", "crv": "P-256", "kid": self.kid, "x": x, "y": y, "alg": "ES256"}]})

    def grant(self, plan: Plan, header: dict[str, Any] | None = None, **changes: Any) -> str:
        claims = {
            "grant_id": "grant_1", "plan_hash": plan_hash(plan), "module_digest": plan.provider_module_digest,
            "epoch": plan.epoch, "iat": int(time.time()), "exp": int(time.time()) + 3600, "trace_id": plan.trace_id,
        } | changes  # fmt: skip
        head = {"alg": "ES256", "typ": "gateway-grant+jwt", "kid": self.kid} | (header or {})
        signed = ".".join(b64(json.dumps(part).encode()) for part in (head, claims))
        r, s = decode_dss_signature(self.key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def call(self, plan: Plan, call_id: str = "c1", secrets: dict[str, str] | None = None, **claims: Any) -> Call:
        return Call(call_id, plan, self.grant(plan, **claims), secrets or {}, plan.limits.timeout_seconds)


def http_plan(url_host: str = "upstream.test", address: str | None = None, **changes: Any) -> Plan:
    """A plan of the http profile for `http_probe`, allowed to GET and POST to one host that leads to `address`."""
    egress = Egress(
        profile="direct_allowlist", allowed_domains=(url_host,), allowed_methods=("GET", "POST", "HEAD"),
        unsafe_resolve={url_host: address} if address else {},
    )  # fmt: skip
    values: dict[str, Any] = {
        "profile": "http", "required_imports": ("http",), "egress": egress,
        "provider_module_digest": digest_of(builtin("http_probe")),
    }  # fmt: skip
    return make_plan(**(values | changes))


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
