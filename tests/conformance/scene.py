"""The actions and the policy that the rows are tested with: the examples, and one action for each thing to be seen."""

import json
from pathlib import Path
from typing import Any

from tests.conformance.stray import stray
from tests.support.manifests import EXAMPLE_NAMES, PROVIDERS, REPOSITORY, put_module, trust
from tests.support.manifests import example as impatient
from tests.support.manifests import write_manifests as write

LONG_REASON = "no\x07t\u202e \x1b[2Jallowed: " + "x" * 600
"""Why `oddly_denied` is denied, as a careless policy might say it."""

PATIENCE = 300
"""Seconds. Every action has them, except where time is the point: no machine is too slow for a limit by accident."""


def example(name: str, /, **changes: Any) -> dict[str, Any]:
    """One of the examples, with changes, and with patience where they don't say otherwise."""
    limits = {"timeout_seconds": PATIENCE} | changes.pop("resource_limits", {})
    return impatient(name, resource_limits=limits, **changes)


def fetching(action_id: str, host: str, **changes: Any) -> dict[str, Any]:
    """An http_fetch from another host."""
    return example(
        "http_fetch", action_id=action_id, egress={"allowed_domains": [host]},
        template={"url_template": f"http://{host}/{{+path}}"}, **changes,
    )  # fmt: skip


def _needs(secret: str, action_id: str) -> dict[str, Any]:
    inject = {"header": "Authorization", "format": "Bearer {value}"}
    return example(
        "http_post", action_id=action_id, egress={"allowed_domains": ["nowhere.gateway.invalid"]},
        template={"url_template": "https://nowhere.gateway.invalid/{+path}"},
        secrets=[{"name": secret, "inject": inject}],
    )  # fmt: skip


_OTHER_SCHEMA = {"required": ["never"], "additionalProperties": True}

GRANTED: dict[str, dict[str, Any]] = {
    # held for a person
    "held_digest": example("text_digest", action_id="held_digest", risk_level="critical"),
    "held_spin": example("spin", action_id="held_spin", risk_level="high"),
    "held_file": example("file_write", action_id="held_file", risk_level="critical"),
    "few_files": example("file_write", action_id="few_files", fs={"allowed_paths": ["ok/*"]}),
    "any_host": example(
        "http_fetch", action_id="any_host", template={"url_template": "https://{host}/x"},
        io={"request_schema": {"required": ["host"], "properties": {"host": {"type": "string"}}}},
        resource_limits={"timeout_seconds": 5},
    ),
    "http_host": example(
        "http_fetch", action_id="http_host", template={"url_template": "http://{host}/x"},
        egress={"allowed_domains": ["only.gateway.invalid"]},
        io={"request_schema": {"required": ["host"], "properties": {"host": {"type": "string"}}}},
    ),
    # verified otherwise
    "unchecked": example("text_digest", action_id="unchecked", verifier_kind="none"),
    "unseen": example(
        "text_digest", action_id="unseen", verifier_kind="response_schema",
        verification_config={"schema": {"type": "object", "required": ["never"]}},
    ),
    # over a limit
    "other_answer": example("text_digest", action_id="other_answer", io={"response_schema": _OTHER_SCHEMA}),
    "small_file": example("file_write", action_id="small_file", fs={"max_file_bytes": 8}),
    "little_fuel": example("text_digest", action_id="little_fuel", resource_limits={"fuel": 1000}),
    "little_memory": example("spin", action_id="little_memory", resource_limits={"memory_mb": 1}),
    "little_time": example("spin", action_id="little_time", resource_limits={"timeout_seconds": 0.1}),
    "no_io": example("file_write", action_id="no_io", resource_limits={"max_io_calls": 0}),
    "unknown_host": fetching("unknown_host", "nowhere.gateway.invalid"),
    "closed_port": fetching("closed_port", "closed.gateway.test"),
    # denied, one by one
    "special_scope": example("text_digest", action_id="special_scope", required_scopes=["tools:special"]),
    "other_sink": example("text_digest", action_id="other_sink", declared_side_effects=["mail_send"]),
    "oddly_denied": example("text_digest", action_id="oddly_denied"),
    "no_secret": _needs("never_given", "no_secret"),
    "some_secret": _needs("upstream_token", "some_secret"),
    # without a schema
    "schemaless": example("text_digest", action_id="schemaless"),
}  # fmt: skip
GRANTED["schemaless"]["io"].pop("request_schema")

NOT_GRANTED: dict[str, dict[str, Any]] = {
    "nobodys": example("text_digest", action_id="nobodys"),
    "nobodys_file": example("file_write", action_id="nobodys_file"),
}

MODULES = ("known", "unknown", "changed", "stray")
"""Actions with modules of their own: trusted, entered nowhere, with other bytes than their digest, and one that asks
for a host that its manifest does not list."""

_STRAY: dict[str, Any] = {
    "action_id": "stray", "version": "1.0.0", "description": "Asks for another host.", "risk_level": "low",
    "required_imports": ["http"], "declared_side_effects": ["http_read"], "verifier_kind": "unverifiable",
    "resource_limits": {"timeout_seconds": PATIENCE},
    "egress": {
        "profile": "direct_allowlist", "allowed_domains": ["upstream.gateway.test"], "allowed_methods": ["GET"],
    },
}  # fmt: skip


def write_manifests(folder: Path) -> Path:
    """Every action of the scene."""
    write(folder, *map(example, EXAMPLE_NAMES), *GRANTED.values(), *NOT_GRANTED.values())
    data = (PROVIDERS / "text_digest.wasm").read_bytes()
    digests = {
        "known": put_module(folder, data + b"\0\x02\x01a"),
        "unknown": put_module(folder, data + b"\0\x02\x01b"),
        "changed": put_module(folder, data, as_digest="c" * 64),
    }
    for name, digest in digests.items():
        write(folder, example("text_digest", action_id=name, provider_module_digest=digest))
    astray = put_module(folder, stray())
    write(folder, _STRAY | {"provider_module_digest": astray})
    trust(folder, digests["known"], digests["changed"], astray)
    return folder


def policy_data(principal: str) -> dict[str, Any]:
    """The access list: `principal` everything that is granted, `clerk` next to nothing."""
    actions = sorted({*EXAMPLE_NAMES, *GRANTED, *MODULES} - {"forbidden_export"})
    return {
        "policy_version": "conformance-1",
        "acl": {
            principal: {"actions": actions, "sinks": ["fs_write", "http_read", "http_write"]},
            "clerk": {"actions": ["text_digest"], "sinks": []},
        },
        "allowlist": {},
        "denied_actions": {"forbidden_export": "nobody exports", "oddly_denied": LONG_REASON},
    }


def write_policy(folder: Path, principal: str) -> Path:
    """The default policy with the scene's data and a rule that denies every mail."""
    folder.mkdir(parents=True, exist_ok=True)
    rules = (REPOSITORY / "contrib" / "policy" / "gateway.rego").read_text()
    (folder / "gateway.rego").write_text(f'{rules}\napplies_sinks if "mail_send" in input.requested_sinks\n')
    (folder / "data.json").write_text(json.dumps(policy_data(principal)))
    return folder
