"""Manifest and policy folders for tests: the examples with changes, and small ones from nothing."""

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "contrib" / "examples"
PROVIDERS = REPOSITORY / "workers" / "providers"

EXAMPLE_NAMES = sorted(path.stem for path in (EXAMPLES / "actions").glob("*.yaml"))
PATIENT: dict[str, Any] = {"resource_limits": {"timeout_seconds": 300}}
ENDLESS: dict[str, Any] = {"resource_limits": {"timeout_seconds": 300, "fuel": 10**15}}
"""For a spin that runs until it is ended from outside."""


def example(name: str, /, **changes: Any) -> dict[str, Any]:
    """One of the example manifests; a mapping among `changes` is merged into the section, anything else replaces it."""
    manifest: dict[str, Any] = yaml.safe_load((EXAMPLES / "actions" / f"{name}.yaml").read_text())
    return _merged(manifest, changes)


def _merged(old: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = copy.deepcopy(old)
    for name, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merged(merged[name], value) if both else value
    return merged


def write_manifests(folder: Path, *manifests: dict[str, Any]) -> Path:
    """Write each into `<action_id>.yaml` of `folder`, made when missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for manifest in manifests:
        (folder / f"{manifest['action_id']}.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))
    return folder


def all_examples(folder: Path, **changes: dict[str, Any]) -> Path:
    """A folder with every example manifest; `changes` by action."""
    return write_manifests(folder, *(example(name, **changes.get(name, {})) for name in EXAMPLE_NAMES))


def patient(folder: Path, **changes: dict[str, Any]) -> str:
    """The examples in `folder`, with time limits that no machine is too slow for; the settings for them and for leases
    that outlive a slow test."""
    slow = {name: _merged(PATIENT, changes.get(name, {})) for name in EXAMPLE_NAMES}
    return f'manifests_dir = "{all_examples(folder, **slow)}"\nlease_ttl_seconds = 3600\n'


def plain_action(action_id: str, digest: str, imports: tuple[str, ...], **more: Any) -> dict[str, Any]:
    """An action that runs a module, with more fuel and time than it needs unless `more` says otherwise, and with what
    its imports are for: GET from the examples' upstream, files of its own."""
    limits = {"fuel": 10**14, "timeout_seconds": 300, "max_io_calls": 10} | more.pop("resource_limits", {})
    made: dict[str, Any] = {
        "action_id": action_id, "version": "1.0.0", "provider_module_digest": digest, "required_imports": list(imports),
        "risk_level": "low", "resource_limits": limits, "verifier_kind": "none",
        "io": {"max_response_bytes": 65_536} | more.pop("io", {}),
    }  # fmt: skip
    if "http" in imports:
        made["declared_side_effects"] = ["http_read"]
        domains = ["upstream.gateway.test"]
        made["egress"] = {"profile": "direct_allowlist", "allowed_domains": domains, "allowed_methods": ["GET"]}
    if "fs" in imports:
        made["declared_side_effects"] = ["fs_write"]
        made["fs"] = {
            "root": "files",
            "operation": "write",
            "allowed_operations": ["write", "stat"],
            "allowed_paths": ["**"],
        }
        made["io"]["request_schema"] = {
            "type": "object", "required": ["path"], "properties": {"path": {"type": "string"}},
        }  # fmt: skip
    return made | more


def put_module(folder: Path, data: bytes, *, as_digest: str | None = None) -> str:
    """Write a provider into `folder/modules` under its digest (or under another's); returns that digest."""
    digest = as_digest or hashlib.sha256(data).hexdigest()
    (folder / "modules").mkdir(parents=True, exist_ok=True)
    (folder / "modules" / f"{digest}.wasm").write_bytes(data)
    return f"sha256:{digest}"


def trust(folder: Path, *digests: str) -> None:
    """Enter digests into the folder's trusted_modules.yaml."""
    entries = dict.fromkeys(digests, "for a test")
    (folder / "trusted_modules.yaml").write_text(yaml.safe_dump({"digests": entries}))


def limit_all(policy: Path, **limits: int) -> None:
    """Give every principal these limits in the data of a policy's folder; none takes them away."""
    file = policy / "data.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"limits": {"default": limits}}))


def open_policy(folder: Path, *more_actions: str, version: str = "test-1") -> Path:
    """The example policy with further actions for everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gateway.rego").write_text((EXAMPLES / "policy" / "gateway.rego").read_text())
    data = json.loads((EXAMPLES / "policy" / "data.json").read_text())
    data["policy_version"] = version
    data["acl"]["dev:anonymous"]["actions"] += more_actions
    (folder / "data.json").write_text(json.dumps(data))
    return folder
