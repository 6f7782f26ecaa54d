"""The plan's hash: nothing that decides what a call does may change without changing it."""

from typing import Any

import msgspec
import pytest

from ipc.configuration.secret_ways import AsHeader
from ipc.evidence.kept_values import KeptRules
from ipc.plan import (
    CallLimits,
    FileAccess,
    Plan,
    PlanEgress,
    PlannedRequest,
    PlannedTool,
    ResponseRules,
    SecretUse,
    decode_plan,
    seal,
)


def plan(**changes: Any) -> Plan:
    whole: dict[str, Any] = {
        "trace_id": "trc_1", "action_id": "a", "action_version": "1.0.0", "risk_level": "low",
        "provider_module_digest": "sha256:00", "required_imports": ("http",), "profile": "http", "isolation": "pooled",
        "principal": "p", "owner": "o", "session_id": "ses_1", "scopes": ("tools:call",), "lease_jti": "lea_1",
        "request": "{}", "request_hash": "sha256:11", "provider_input": "{}", "limits": CallLimits(),
        "egress": PlanEgress("direct_allowlist", ("a.test",), ("GET",), "http://p", {"a.test": "127.0.0.1:1"}),
        "files": FileAccess("/files", ("write",), ("**",), ("x",)),
        "http_request": PlannedRequest(
            "GET", "http://a.test/", (("a", "b"),), "body", ResponseRules(("Link",), {"id": "/id"}), "a",
            PlannedTool("t", "d"),
        ),
        "secrets": (SecretUse("token", way=AsHeader("Authorization")),), "targets": ("GET http://a.test/",),
        "sinks": ("http_read",), "unresolved_domains": (), "unresolved_paths": (), "verifier_kind": "none",
        "verification_config": "{}", "response_schema": "{}", "enforce_response_schema": True,
        "max_response_bytes": 10, "policy_version": "1", "policy_rule": "allow", "calls_remaining": 3, "epoch": 0,
        "created_at": "2026-01-01T00:00:00.000Z", "kept": KeptRules(("/a",), ("/b",), "{a}"),
    }  # fmt: skip
    return Plan(**{**whole, **changes})


def changed(value: Any) -> Any:
    """Return a different value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case None:
            return "x"
        case tuple():
            return (*value, changed(value[0]) if value else "x")
        case dict():
            return {**value, "other.test": "127.0.0.1:2"}
    raise AssertionError(f"no other value of {type(value)}")


def variants(struct: msgspec.Struct, path: str = "") -> list[tuple[str, Any]]:
    """Every field, and every field of every nested struct, changed once."""
    pairs: list[tuple[str, Any]] = []
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if isinstance(value, msgspec.Struct):
            for name, inner in variants(value, f"{path}{field.name}."):
                pairs.append((name, msgspec.structs.replace(struct, **{field.name: inner})))
        elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            for name, inner in variants(value[0], f"{path}{field.name}[0]."):
                pairs.append((name, msgspec.structs.replace(struct, **{field.name: (inner, *value[1:])})))
        else:
            pairs.append((path + field.name, msgspec.structs.replace(struct, **{field.name: changed(value)})))
    return pairs


@pytest.mark.parametrize(("name", "other"), variants(plan()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_change_of_any_field_changes_the_hash(name: str, other: Plan) -> None:
    assert seal(other).digest != seal(plan()).digest, name


def test_the_same_plan_hashes_the_same_after_a_journey() -> None:
    there_and_back = msgspec.msgpack.decode(msgspec.msgpack.encode(plan()), type=Plan)
    assert seal(there_and_back).encoded == seal(plan()).encoded
    stored_and_read = msgspec.json.decode(msgspec.json.encode(plan()), type=Plan)
    assert seal(stored_and_read).digest == seal(plan()).digest


def test_a_plan_is_decoded_from_the_bytes_that_are_hashed() -> None:
    assert decode_plan(seal(plan()).encoded) == plan()


@pytest.mark.parametrize("more", [b"", b"{}", b"null", b"\xff", b"[" * 100_000, b'{"trace_id":"t","more":1}'])
def test_bytes_that_are_no_plan_are_refused(more: bytes) -> None:
    with pytest.raises(ValueError, match="not a plan"):
        decode_plan(more)


def test_the_order_of_a_map_does_not_matter() -> None:
    one = plan(egress=PlanEgress(unsafe_resolve={"a": "1", "b": "2"}))
    two = plan(egress=PlanEgress(unsafe_resolve={"b": "2", "a": "1"}))
    assert seal(one).digest == seal(two).digest


def test_a_field_that_moves_its_value_to_its_neighbour_changes_the_hash() -> None:
    assert seal(plan(trace_id="x", action_id="y")).digest != seal(plan(trace_id="y", action_id="x")).digest
    assert seal(plan(targets=("a", "b"))).digest != seal(plan(targets=("ab",))).digest


def test_unknown_fields_are_refused() -> None:
    raw = msgspec.to_builtins(plan()) | {"more": 1}
    with pytest.raises(msgspec.ValidationError, match="more"):
        msgspec.convert(raw, Plan)
