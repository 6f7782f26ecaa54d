"""Every rule of the default policy, with its reason, through the real evaluator."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from frontend.policy.question import Decision

Decide = Callable[..., Decision]

DATA: dict[str, Any] = {
    "policy_version": "test-1",
    "acl": {
        "agent": {"actions": ["read", "pay", "export"], "sinks": ["http_read", "http_write"]},
        "heir": {"actions": ["pay"], "sinks": ["http_write"], "inherits_wildcard": True},
        "loner": {"actions": ["pay"], "sinks": ["http_write"], "inherits_wildcard": False},
        "empty": {"actions": []},
        "busy": {"actions": [f"a{number % 13}" for number in range(20)]},
        "*": {"actions": ["read"], "sinks": ["http_read"]},
    },
    "allowlist": {"pay": {"agent": True, "loner": False}, "export": {"agent": True}, "secret": {"agent": True}},
    "denied_actions": {"export": "exports of tables are not allowed for any agent"},
}

OTHERWISE_ALLOWED: dict[str, Any] = {"principal": "agent", "action_id": "read", "requested_sinks": ("http_read",)}


@pytest.fixture(scope="module")
def decide(deciding: Callable[[dict[str, Any]], Decide]) -> Decide:
    return deciding(DATA)


def denied(decision: Decision) -> tuple[str, str]:
    assert not decision.allow
    assert not decision.requires_approval
    assert decision.allowed_sinks == ()
    assert decision.policy_version == "test-1"
    return decision.rule, decision.deny_reason


def allowed(decision: Decision) -> tuple[str, bool]:
    assert decision.allow
    assert decision.deny_reason == ""
    assert decision.policy_version == "test-1"
    return decision.rule, decision.requires_approval


def test_what_no_rule_denies_or_holds_is_allowed_with_its_sinks(decide: Decide) -> None:
    decision = decide(**OTHERWISE_ALLOWED)
    assert allowed(decision) == ("allow", False)
    assert decision.allowed_sinks == ("http_read",)


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        ("mismatch", "its bytes are not those of the digest in the manifest"),
        ("not_registered", "its digest is not entered in trusted_modules.yaml"),
        ("", "the verdict on it is"),
        ("DIGEST_OK", "the verdict on it is DIGEST_OK"),
    ],
)
def test_an_untrusted_module_is_denied(decide: Decide, verdict: str, why: str) -> None:
    rule, reason = denied(decide(**OTHERWISE_ALLOWED, action_trust_verdict=verdict))
    assert rule == "trust"
    assert reason == f"the provider module of read is not trusted: {why}"


def test_a_denied_action_is_denied_to_who_may_call_it_with_the_reason_of_the_data(decide: Decide) -> None:
    assert denied(decide(**(OTHERWISE_ALLOWED | {"action_id": "export"}))) == (
        "denied_action",
        "exports of tables are not allowed for any agent",
    )


@pytest.mark.parametrize(
    ("principal", "action_id", "is_allowed"),
    [
        ("agent", "read", True),
        ("agent", "pay", True),
        ("agent", "unknown", False),
        ("stranger", "read", True),  # the wildcard covers principals without an entry
        ("stranger", "pay", False),
        ("heir", "read", True),  # its own entry and the wildcard's
        ("heir", "pay", True),
        ("loner", "read", False),  # an entry of its own stands alone
        ("loner", "pay", True),
        ("empty", "read", False),
        ("", "read", True),
        ("", "pay", False),
    ],
)
def test_the_acl_names_who_may_call_what(decide: Decide, principal: str, action_id: str, is_allowed: bool) -> None:
    decision = decide(principal=principal, action_id=action_id)
    if is_allowed:
        assert decision.allow
    else:
        rule, reason = denied(decision)
        assert rule == "acl"
        assert reason.startswith(f"{principal} may not call {action_id}; it may call ".lstrip())


@pytest.mark.parametrize(
    ("principal", "actions"),
    [
        ("agent", "export, pay, read"),
        ("heir", "pay, read"),
        ("loner", "pay"),
        ("empty", "nothing"),
        ("stranger", "read"),
        ("busy", "a0, a1, a10, a11, a12, a2, a3, a4, a5, a6 and more"),
    ],
)
def test_who_may_not_call_an_action_reads_which_it_may_call(decide: Decide, principal: str, actions: str) -> None:
    said = f"{principal} may not call unknown; it may call {actions}"
    assert denied(decide(principal=principal, action_id="unknown")) == ("acl", said)


@pytest.mark.parametrize(
    ("held", "required", "missing"),
    [
        (("tools:call",), ("tools:call",), ""),
        (("tools:call", "a:b"), ("tools:call",), ""),
        ((), (), ""),
        ((), ("tools:call",), "tools:call"),
        (("tools:call",), ("tools:call", "pay:high", "a:b"), "pay:high, a:b"),
        (("tools:cal", "tools:call2"), ("tools:call",), "tools:call"),
    ],
)
def test_every_required_scope_must_be_held(
    decide: Decide, held: tuple[str, ...], required: tuple[str, ...], missing: str
) -> None:
    decision = decide(**OTHERWISE_ALLOWED, scopes=held, required_scopes=required)
    if missing:
        needed, has = ", ".join(sorted(required)), ", ".join(sorted(held)) or "nothing"
        assert denied(decision) == ("scope", f"read needs the scopes {needed}; the lease has {has}")
    else:
        assert decision.allow


@pytest.mark.parametrize("remaining", [None, 1, 10**9, 0])
def test_the_budget_is_not_the_rules_business(decide: Decide, remaining: int | None) -> None:
    """The pipeline answers a spent one before policy is asked."""
    assert allowed(decide(**OTHERWISE_ALLOWED, calls_remaining=remaining)) == ("allow", False)


@pytest.mark.parametrize(
    ("principal", "action_id", "sinks", "missing", "granted"),
    [
        ("agent", "read", (), "", ""),
        ("agent", "read", ("http_write", "http_read"), "", ""),
        ("agent", "read", ("http_read", "fs_write"), "fs_write", "http_read, http_write"),
        ("agent", "read", ("smtp", "http_read", "fs_write"), "fs_write, smtp", "http_read, http_write"),
        ("stranger", "read", ("http_read",), "", ""),
        ("stranger", "read", ("http_write",), "http_write", "http_read"),
        ("heir", "pay", ("http_read", "http_write"), "", ""),
        ("heir", "pay", ("fs_write",), "fs_write", "http_read, http_write"),
        ("loner", "pay", ("http_write",), "", ""),
        ("loner", "pay", ("http_read",), "http_read", "http_write"),
        ("busy", "a1", ("http_read",), "http_read", "nothing"),
    ],
)
def test_every_requested_sink_must_be_granted(
    decide: Decide, principal: str, action_id: str, sinks: tuple[str, ...], missing: str, granted: str
) -> None:
    decision = decide(principal=principal, action_id=action_id, requested_sinks=sinks)
    if missing:
        said = f"{action_id} needs the sinks {missing}, which {principal} may not use; it may use {granted}"
        assert denied(decision) == ("sinks", said)
    else:
        assert decision.allow
        assert decision.allowed_sinks == sinks


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"action_risk_level": "low"}, "allow"),
        ({"action_risk_level": "medium"}, "allow"),
        ({"action_risk_level": "high"}, "hold_high_risk"),
        ({"action_risk_level": "critical"}, "hold_high_risk"),
        ({"action_risk_level": "unheard of"}, "hold_high_risk"),
        ({"unresolved_domains": ("a.example",)}, "hold_unresolved_domain"),
        ({"unresolved_paths": ("a/b",)}, "hold_unresolved_path"),
        ({"unresolved_domains": ("a.example",), "unresolved_paths": ("a/b",)}, "hold_unresolved_domain"),
        ({"action_risk_level": "high", "unresolved_domains": ("a.example",)}, "hold_high_risk"),
    ],
)
def test_risk_and_what_is_new_wait_for_a_person(decide: Decide, changes: dict[str, Any], rule: str) -> None:
    assert allowed(decide(**OTHERWISE_ALLOWED, **changes)) == (rule, rule != "allow")


HOLDS = [{"action_risk_level": "critical"}, {"unresolved_domains": ("a.example",)}, {"unresolved_paths": ("a/b",)}]


@pytest.mark.parametrize("hold", HOLDS)
def test_the_allowlist_lifts_every_hold_of_that_pair_only(decide: Decide, hold: dict[str, Any]) -> None:
    assert allowed(decide(principal="agent", action_id="pay", **hold)) == ("allowlist", False)
    assert allowed(decide(principal="agent", action_id="read", **hold))[1]
    assert allowed(decide(principal="heir", action_id="pay", **hold))[1]


def test_an_allowlist_entry_that_is_not_true_lifts_nothing(decide: Decide) -> None:
    assert allowed(decide(principal="loner", action_id="pay", action_risk_level="high")) == ("hold_high_risk", True)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"action_trust_verdict": "mismatch"}, "trust"),
        ({"action_id": "export"}, "denied_action"),
        ({"action_id": "secret"}, "acl"),
        ({"scopes": ()}, "scope"),
        ({"requested_sinks": ("fs_write",)}, "sinks"),
    ],
)
def test_every_denial_binds_an_allowlisted_pair(decide: Decide, changes: dict[str, Any], rule: str) -> None:
    question = {"principal": "agent", "action_id": "pay", "action_risk_level": "critical"} | changes
    assert denied(decide(**question))[0] == rule


FAILURES: list[tuple[str, dict[str, Any]]] = [
    ("trust", {"action_trust_verdict": "mismatch"}),
    ("acl", {"action_id": "unknown"}),
    ("scope", {"scopes": ()}),
    ("sinks", {"requested_sinks": ("fs_write",)}),
    ("hold_high_risk", {"action_risk_level": "high"}),
    ("hold_unresolved_domain", {"unresolved_domains": ("a.example",)}),
    ("hold_unresolved_path", {"unresolved_paths": ("a/b",)}),
]


@pytest.mark.parametrize("pair", list(itertools.combinations(range(len(FAILURES)), 2)))
def test_of_two_rules_that_apply_the_earlier_one_decides(decide: Decide, pair: tuple[int, int]) -> None:
    first, second = (FAILURES[index] for index in pair)
    assert decide(**(OTHERWISE_ALLOWED | second[1] | first[1])).rule == first[0]


@pytest.mark.parametrize("text", ['a"b', "a\\b", "é😀", "*", 'x", "allow": true, "y": "'])
def test_names_that_look_like_syntax_are_only_names(decide: Decide, text: str) -> None:
    assert denied(decide(principal=text, action_id="pay")) == ("acl", f"{text} may not call pay; it may call read")
    said = f"agent may not call {text}; it may call export, pay, read"
    assert denied(decide(principal="agent", action_id=text)) == ("acl", said)


def test_without_a_wildcard_entry_nobody_else_may_do_anything(
    deciding: Callable[[dict[str, Any]], Decide],
) -> None:
    decide = deciding({"policy_version": "test-1", "acl": {"agent": {"actions": ["read"], "inherits_wildcard": True}}})
    assert decide(principal="agent", action_id="read").allow
    assert denied(decide(principal="agent", action_id="pay"))[0] == "acl"
    assert denied(decide(principal="stranger", action_id="read"))[0] == "acl"


def test_data_that_holds_nothing_but_a_version_denies_everything(
    deciding: Callable[[dict[str, Any]], Decide],
) -> None:
    assert denied(deciding({"policy_version": "test-1"})())[0] == "acl"
