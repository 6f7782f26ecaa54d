import hashlib
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import rfc8785

from frontend.actions.networks import are_in_force
from frontend.actions.planning import Draft, build_plan, draft
from frontend.actions.registry import Action
from frontend.actions.targets import Learned
from frontend.auth.lease import Lease
from frontend.errors import GateError
from ipc.channel.framing import encode_frame
from ipc.configuration.networks import NetworkSettings
from ipc.configuration.secret_ways import AsHeader
from ipc.limits import MAX_CALL_FRAME
from ipc.messages.calling import Call
from ipc.plan import Plan, SecretUse, seal
from ipc.settings import EgressSettings, Settings

ActionOf = Callable[..., Action]


@pytest.fixture
def drafted(lease: Lease, settings: Settings) -> Callable[..., Draft]:
    def make(action: Action, body: Any, learned: Learned | None = None, **changes: Any) -> Draft:
        changed = msgspec.structs.replace(settings, **changes)
        return draft(action, body, lease, 3, learned or Learned(), settings=changed)

    return make


def plan_of(drafted: Draft, **options: bool) -> Plan:
    return build_plan(drafted, "trc_1", "2026-11-20.1", "allow", 7, "2026-11-21T11:12:13.123Z", **options)


def test_the_request_is_canonical_and_its_hash_is_that_of_its_bytes(
    action_of: ActionOf, drafted: Callable[..., Draft]
) -> None:
    action = action_of("compute", {"io": {"request_schema": {"additionalProperties": True, "required": []}}})
    body: Any = {"z": 1.0, "a": "é\u2028", "n": 1e21, "k": [True, None]}
    plan_draft = drafted(action, body)
    assert plan_draft.plan.request.encode() == rfc8785.dumps(body)
    assert plan_draft.plan.request_hash == "sha256:" + hashlib.sha256(rfc8785.dumps(body)).hexdigest()
    assert plan_draft.plan.provider_input == plan_draft.plan.request


def test_dropped_nulls_are_neither_hashed_nor_sent(action_of: ActionOf, drafted: Callable[..., Draft]) -> None:
    action = action_of("http")
    sent, unsent = drafted(action, {"path": "a", "message": None, "q": None}), drafted(action, {"path": "a"})
    assert sent == unsent
    assert sent.plan.request == '{"path":"a"}'


def test_the_provider_of_a_template_gets_the_planned_call_beside_the_request(
    action_of: ActionOf, drafted: Callable[..., Draft]
) -> None:
    plan_draft = drafted(action_of("http"), {"path": "/items", "message": 'a "b"', "q": "x y"})
    assert json.loads(plan_draft.plan.provider_input) == {
        "request": {"message": 'a "b"', "path": "/items", "q": "x y"},
        "call": {
            "method": "POST",
            "url": "https://api.example.com/items?q=x%20y",
            "headers": [["X-Kind", "post"], ["Content-Type", "application/json"]],
            "body": '{"fixed":[1,null],"message":"a \\"b\\""}',
        },
    }
    plan = plan_of(plan_draft)
    assert msgspec.json.decode(plan.provider_input)["call"] == msgspec.json.decode(
        msgspec.json.encode(plan.http_request)
    )


def test_a_plan_holds_everything_that_the_draft_and_the_action_say(
    action_of: ActionOf, drafted: Callable[..., Draft], lease: Lease
) -> None:
    verified = {"verifier_kind": "http_status", "verification_config": {"expected": [201, "3xx"]}}
    action = action_of("http", {"io": {"response_schema": {"type": "object"}}, **verified})
    plan_draft = drafted(action, {"path": "items"})
    plan = plan_of(plan_draft)
    assert (plan.action_id, plan.action_version, plan.risk_level) == ("http_post", "1.0.0", "high")
    assert (plan.principal, plan.owner, plan.session_id, plan.lease_jti) == ("agent", "team", "ses_1", "lea_1")
    assert (plan.profile, plan.isolation, plan.required_imports) == ("http", "shared", ("http",))
    assert (plan.calls_remaining, plan.epoch, plan.scopes) == (7, 3, lease.scopes)
    assert (plan.policy_version, plan.policy_rule) == ("2026-11-20.1", "allow")
    assert plan.verification_config == '{"expected":[201,"3xx"]}'
    assert plan.response_schema == '{"type":"object"}'
    assert plan.enforce_response_schema
    assert plan.secrets == (
        SecretUse("token", True, AsHeader("Authorization", "Bearer {value}"), ("api.example.com",)),
    )
    assert plan.egress.allowed_methods == ("POST",)
    assert plan.targets == plan_draft.plan.targets
    assert plan.provider_module_digest == action.digest
    assert plan.created_at == "2026-11-21T11:12:13.123Z"
    assert seal(plan).digest == seal(plan_of(drafted(action, {"path": "items"}))).digest
    assert seal(plan).digest != seal(plan_of(drafted(action, {"path": "items2"}))).digest


def test_egress_comes_from_the_manifest_what_was_learned_and_the_settings(
    action_of: ActionOf, drafted: Callable[..., Draft]
) -> None:
    learned = Learned(domains=("learned.example",))
    resolve = {"api.example.com": "127.0.0.1:8080"}
    plan_draft = drafted(action_of("http"), {"path": "a"}, learned, egress=EgressSettings(unsafe_resolve=resolve))
    assert plan_draft.plan.egress.allowed_domains == ("api.example.com", "learned.example")
    assert plan_draft.plan.egress.unsafe_resolve == resolve
    assert plan_draft.plan.egress.proxy_url is None, "a direct action does not go through the proxy"
    proxied = action_of("http", {"egress": {"profile": "proxy_allowlist"}}, has_proxy=True)
    assert drafted(proxied, {"path": "a"}).plan.egress.proxy_url == "http://proxy.example.com:3128"
    assert drafted(action_of("compute"), {"text": "a"}).plan.egress.profile == "none"


BILLING = NetworkSettings("billing", ("*.example.com",), ("10.0.0.0/8",), (443,), "/etc/ca.pem")
OTHER = NetworkSettings("other", ("learned.example",), ("10.0.0.0/8",))


def test_a_plan_has_the_private_networks_of_the_host_that_it_calls(
    action_of: ActionOf, drafted: Callable[..., Draft]
) -> None:
    learned, egress = Learned(domains=("learned.example",)), EgressSettings(networks=(OTHER, BILLING))
    plan = drafted(action_of("http"), {"path": "a"}, learned, egress=egress).plan
    assert plan.egress.networks == (BILLING.planned,), "the template's host, and no other that is allowed"
    proxied = action_of("http", {"egress": {"profile": "proxy_allowlist"}}, has_proxy=True)
    assert drafted(proxied, {"path": "a"}, egress=egress).plan.egress.networks == (), "the proxy judges"
    assert (
        drafted(action_of("http"), {"path": "a"}, egress=EgressSettings(networks=(OTHER,))).plan.egress.networks == ()
    )


def test_without_a_template_a_plan_has_the_private_networks_of_all_names_that_it_may_call(
    action_of: ActionOf, drafted: Callable[..., Draft]
) -> None:
    free = action_of("http", {"template": None, "egress": {"allowed_methods": ["GET"]}})
    learned, egress = Learned(domains=("learned.example",)), EgressSettings(networks=(OTHER, BILLING))
    assert drafted(free, {"path": "a"}, learned, egress=egress).plan.egress.networks == (OTHER.planned, BILLING.planned)


def test_networks_of_a_plan_are_in_force_while_the_configuration_has_them(
    action_of: ActionOf, drafted: Callable[..., Draft]
) -> None:
    plan = plan_of(drafted(action_of("http"), {"path": "a"}, egress=EgressSettings(networks=(BILLING,))))
    assert are_in_force(plan, (OTHER, BILLING))
    plain = plan_of(drafted(action_of("http"), {"path": "a"}))
    assert are_in_force(plain, (OTHER,))
    assert not are_in_force(plain, (BILLING,))
    for changed in ((), (OTHER,), (msgspec.structs.replace(BILLING, ranges=("10.0.0.0/16",)),), (BILLING, BILLING)):
        assert not are_in_force(plan, changed)


def test_a_file_is_verified_where_the_action_writes_it(action_of: ActionOf, drafted: Callable[..., Draft]) -> None:
    schema = {"properties": {"file": {"type": "string"}}, "required": ["file", "content"]}
    change = {"io": {"request_schema": schema}, "fs": {"path_pointer": "/file"}, "verifier_kind": "fs_hash"}
    plan_draft = drafted(action_of("files", change), {"file": "notes/a", "content": ""})
    assert plan_of(plan_draft).verification_config == '{"path_pointer":"/file"}'


def test_methods_default_to_that_of_the_template(action_of: ActionOf, drafted: Callable[..., Draft]) -> None:
    action = action_of("http", {"egress": {"allowed_methods": None}})
    assert drafted(action, {"path": "a"}).plan.egress.allowed_methods == ("POST",)


def test_what_is_unresolved_is_allowed_only_in_a_plan_that_waits_for_a_person(
    action_of: ActionOf, drafted: Callable[..., Draft]
) -> None:
    plan_draft = drafted(action_of("http", {"egress": {"allowed_domains": ["other.example"]}}), {"path": "a"})
    assert plan_of(plan_draft).egress.allowed_domains == ("other.example",)
    held = plan_of(plan_draft, is_held=True)
    assert held.egress.allowed_domains == ("other.example", "api.example.com")
    assert held.unresolved_domains == ("api.example.com",)

    plan_draft = drafted(action_of("files"), {"path": "other/a", "content": ""})
    plan, held = plan_of(plan_draft), plan_of(plan_draft, is_held=True)
    assert plan.files is not None
    assert held.files is not None
    assert plan.files.allowed_paths == ()
    assert held.files.allowed_paths == ("other/a",)


def test_holding_changes_nothing_else(action_of: ActionOf, drafted: Callable[..., Draft]) -> None:
    plan_draft = drafted(action_of("http"), {"path": "a"})
    assert plan_of(plan_draft) == plan_of(plan_draft, is_held=True)


def test_a_request_above_the_actions_own_limit_is_refused(action_of: ActionOf, drafted: Callable[..., Draft]) -> None:
    action = action_of("compute", {"io": {"max_request_bytes": 20}})
    assert drafted(action, {"text": "x" * 9})
    with pytest.raises(GateError) as refused:
        drafted(action, {"text": "x" * 10})
    assert (refused.value.code, refused.value.status) == ("body_too_large", 413)


def test_a_violation_of_the_schema_ends_before_anything_is_drafted(
    action_of: ActionOf, drafted: Callable[..., Draft]
) -> None:
    with pytest.raises(GateError, match="schema_violation"):
        drafted(action_of("compute"), {"text": 5})


def test_a_response_schema_that_only_warns_is_planned_so(action_of: ActionOf, drafted: Callable[..., Draft]) -> None:
    assert not plan_of(
        drafted(action_of("compute"), {"text": "a"}, response_schema_enforcement="warn")
    ).enforce_response_schema


def test_the_largest_request_fits_a_frame_though_it_is_nothing_but_quotes(
    action_of: ActionOf, drafted: Callable[..., Draft]
) -> None:
    action = action_of("http", {"io": {"max_request_bytes": 1_048_576}})
    plan = plan_of(drafted(action, {"path": "a", "message": '"' * 524_000}))
    encode_frame(Call("intent_1", seal(plan).encoded, 30.0), MAX_CALL_FRAME)


def test_no_secret_value_has_a_place_in_a_plan() -> None:
    assert set(SecretUse.__struct_fields__) == {"name", "required", "way", "domains"}
