"""Policy and allowlist as operators see and change them, over real rules in a real policy process."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.front_core import Core, action, registry_of
from tests.support.policed import DATA, policed

GRANT, REVOKE, ALLOWLIST = (f"/v1/admin/policy/{name}" for name in ("grant", "revoke", "allowlist"))
ME = "dev:anonymous"
LONG = "x" * 257

pytestmark = pytest.mark.policed(is_real=True)


async def call(core: Core, action_id: str) -> tuple[int, Any]:
    agent = await core.agent()
    status, _ = await agent.call(action_id)
    return status, (await core.events(event_type="ActionCall"))[0].get("policy_rule")


# ------------------------------------------------------------------ what is shown


async def test_a_principal_that_is_not_there_is_404(core: Core) -> None:
    for name in ("nobody", "*", "%2A", "-", "a%20b", LONG, "grant", "a/b"):
        status, body = await core.operate("GET", f"/v1/admin/policy/{name}")
        assert (status, body["error"]) == (404, "not_found" if "/" in name else "principal_not_found"), name


async def test_the_wildcard_is_a_principal_like_any_other(core: Core) -> None:
    status, body = await core.operate("POST", GRANT, {"principal": "*", "actions": ["note"]})
    assert (status, body["sinks"], body["inherits_wildcard"]) == (200, ["fs_write"], False)
    for name in ("*", "%2A"):
        assert (await core.operate("GET", f"/v1/admin/policy/{name}"))[1]["actions"] == ["note"]


# ------------------------------------------------------------------ what a change does to the next call


async def test_a_grant_and_a_revocation_decide_from_the_next_call_on(core: Core) -> None:
    assert await call(core, "note") == (403, "acl")
    assert (await core.operate("POST", GRANT, {"principal": ME, "actions": ["note"]}))[0] == 200
    assert await call(core, "note") == (200, "allow")
    agent = await core.agent()
    version = (await core.operate("GET", "/v1/admin/status"))[1]["policy_version"]
    assert version.startswith("v1+")
    assert (await core.operate("POST", REVOKE, {"principal": ME, "actions": ["note"]}))[0] == 200
    assert (await agent.call("note"))[0] == 403, "for leases of before as well"
    event = (await core.events(event_type="ActionCall"))[0]
    assert event["policy_version"] not in (version, "v1")


async def test_an_exception_lifts_the_hold_at_once_and_its_removal_brings_it_back(core: Core) -> None:
    pair = {"action_id": "pay", "agent_id": ME}
    assert await call(core, "pay") == (202, "hold_high_risk")
    for _ in range(2):
        status, body = await core.operate("POST", ALLOWLIST, pair)
        assert (status, body | {"policy_version": ""}) == (200, {"ok": True, **pair, "policy_version": ""})
    assert await call(core, "pay") == (200, "allowlist")
    assert (await core.operate("DELETE", ALLOWLIST, pair))[0] == 200
    assert await call(core, "pay") == (202, "hold_high_risk")
    assert await core.operate("DELETE", ALLOWLIST, pair) == (404, {"error": "allowlist_entry_not_found"})
    assert (await core.operate("GET", "/v1/admin/policy"))[1]["allowlist"] == {"pay": ["billing"]}
    assert (await core.operate("DELETE", ALLOWLIST, pair | {"agent_id": "billing"}))[0] == 200
    assert (await core.operate("GET", "/v1/admin/policy"))[1]["allowlist"] == {}, "an action goes with its last agent"


async def test_sinks_that_stand_in_a_file_are_never_believed(tmp_path: Path) -> None:
    by_hand = {ME: {"actions": ["pay"], "sinks": ["http_write", "mail_send"]}, "idle": {"actions": [], "sinks": ["x"]}}
    async with policed(tmp_path, is_real=True, data={"acl": by_hand}) as core:
        _, shown = await core.operate("GET", "/v1/admin/policy")
        assert {name: entry["sinks"] for name, entry in shown["principals"].items()} == {ME: ["http_write"], "idle": []}
        assert shown["acl"][ME]["allowed_sinks"] == ["http_write"]
        assert (await core.operate("POST", ALLOWLIST, {"action_id": "pay", "agent_id": ME}))[0] == 200
        assert await call(core, "pay") == (200, "allowlist")
        mails = action("pay", risk_level="critical", declared_side_effects=["http_write", "mail_send"])
        core.services.configuration.current.registry = registry_of(tmp_path / "mails", mails)
        assert await call(core, "pay") == (403, "sinks"), "the engine was given none of what the file lists"


# ------------------------------------------------------------------ what is refused before anything is done

REFUSED: dict[str, tuple[str, str, Any, int, str]] = {
    "grant: no principal": ("POST", GRANT, {"principal": "", "actions": ["pay"]}, 400, "invalid_input"),
    "grant: a long principal": ("POST", GRANT, {"principal": LONG, "actions": ["pay"]}, 400, "invalid_input"),
    "grant: a strange principal": ("POST", GRANT, {"principal": "a b", "actions": ["pay"]}, 400, "invalid_input"),
    "grant: a line break": ("POST", GRANT, {"principal": "a\n", "actions": ["pay"]}, 400, "invalid_input"),
    "grant: two stars": ("POST", GRANT, {"principal": "**", "actions": ["pay"]}, 400, "invalid_input"),
    "grant: no actions": ("POST", GRANT, {"principal": "a", "actions": []}, 400, "invalid_input"),
    "grant: too many": ("POST", GRANT, {"principal": "a", "actions": ["pay"] * 257}, 400, "invalid_input"),
    "grant: a strange action": ("POST", GRANT, {"principal": "a", "actions": ["pay", "../x"]}, 400, "invalid_input"),
    "grant: a number": ("POST", GRANT, {"principal": "a", "actions": [1]}, 400, "invalid_request"),
    "grant: sinks": ("POST", GRANT, {"principal": "a", "actions": ["pay"], "sinks": ["x"]}, 400, "invalid_request"),
    "grant: no such action": ("POST", GRANT, {"principal": "a", "actions": ["pay", "nope"]}, 400, "unknown_action"),
    "revoke: no such action": ("POST", REVOKE, {"principal": ME, "actions": ["pay", "nope"]}, 400, "unknown_action"),
    "revoke: no such principal": ("POST", REVOKE, {"principal": "a", "actions": ["pay"]}, 404, "principal_not_found"),
    "revoke: strange": ("POST", REVOKE, {"principal": "a/b", "actions": ["pay"]}, 400, "invalid_input"),
    "allow: no action": ("POST", ALLOWLIST, {"action_id": "", "agent_id": "a"}, 400, "invalid_input"),
    "allow: a long action": ("POST", ALLOWLIST, {"action_id": LONG, "agent_id": "a"}, 400, "invalid_input"),
    "allow: a strange action": ("POST", ALLOWLIST, {"action_id": "p:ay", "agent_id": "a"}, 400, "invalid_input"),
    "allow: no agent": ("POST", ALLOWLIST, {"action_id": "pay", "agent_id": ""}, 400, "invalid_input"),
    "allow: a long agent": ("POST", ALLOWLIST, {"action_id": "pay", "agent_id": LONG}, 400, "invalid_input"),
    "allow: a strange agent": ("POST", ALLOWLIST, {"action_id": "pay", "agent_id": "a/b"}, 400, "invalid_input"),
    "allow: everybody": ("POST", ALLOWLIST, {"action_id": "pay", "agent_id": "*"}, 400, "invalid_input"),
    "allow: a missing agent": ("POST", ALLOWLIST, {"action_id": "pay"}, 400, "invalid_input"),
    "allow: a null": ("POST", ALLOWLIST, {"action_id": "pay", "agent_id": None}, 400, "invalid_input"),
    "disallow: a missing agent": ("DELETE", ALLOWLIST, {"action_id": "pay"}, 400, "invalid_input"),
    "allow: no such action": ("POST", ALLOWLIST, {"action_id": "nope", "agent_id": "a"}, 404, "action_not_found"),
    "disallow: strange": ("DELETE", ALLOWLIST, {"action_id": "pay", "agent_id": " "}, 400, "invalid_input"),
    "disallow: nothing there": (
        "DELETE", ALLOWLIST, {"action_id": "pay", "agent_id": "a"}, 404, "allowlist_entry_not_found"
    ),
}  # fmt: skip


async def test_what_will_not_do_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    async with policed(tmp_path, workers=0) as core:
        before = (tmp_path / "policy" / "data.json").stat()
        for name, (method, path, body, status, code) in REFUSED.items():
            object.__setattr__(core.services, "rates", type(core.services.rates)())
            actual, answer = await core.operate(method, path, body)
            assert (actual, answer["error"]) == (status, code), name
            assert status == 404 or answer["message"], name
            assert LONG not in str(answer), name
        assert (tmp_path / "policy" / "data.json").stat() == before
        assert (await core.operate("GET", "/v1/admin/policy"))[1]["principals"].keys() == DATA["acl"].keys()
        assert not [event for event in await core.events() if event["event_type"].startswith("Policy")]
        assert not (tmp_path / "policy" / "data.json.lock").exists(), "not even a turn was taken"
