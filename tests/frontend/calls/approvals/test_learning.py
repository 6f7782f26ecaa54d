"""Approve and learn: only what the call waited for, only once it went well, and never at the price of the answer."""

from pathlib import Path
from typing import Any

import pytest

from frontend.egress.rules import MAX_PER_ACTION, LearnedRule, Rules, encode_rules
from frontend.notary.errors import NotaryUnavailable
from ipc.process.private_files import write_private
from tests.support.coded import Coded
from tests.support.front_core import ALLOW, HOLD, Core, front_core, refuses, then
from tests.support.held_calls import approve, filing, held, reached, reaching, state_of

pytestmark = pytest.mark.front(reaching(), workers=0)

FULL = NotaryUnavailable("the disk is full")
NEW: dict[str, Any] = {"host": "api.new.example"}


async def learned(core: Core) -> list[str]:
    kinds = [(await core.operate("GET", f"/v1/admin/{noun}s"))[1][f"{noun}s"] for noun in ("domain", "path")]
    return [item.get("domain") or item["path"] for items in kinds for item in items]


@pytest.mark.parametrize("domain", ["api.new.example", "*.new.example", "API.New.Example"])
async def test_a_domain_that_the_call_waited_for_is_learned_with_its_approval(core: Core, domain: str) -> None:
    core.desk.start("http")
    agent, approval_id = await held(core, **NEW)
    status, body = await approve(core, approval_id, f"?learn_domain={domain}")
    assert (status, body["learned_domain"]) == (200, domain.lower())
    assert "learned_path" not in body
    assert "learn_error" not in body
    (item,) = (await core.operate("GET", "/v1/admin/domains"))[1]["domains"]
    assert (item["domain"], item["source"], item["added_by"]) == (domain.lower(), "approval", "op")
    assert await reached(core, agent, NEW) == ()
    (event,) = await core.events(event_type="DomainAdded")
    assert (event["approval_id"], event["action_id"], event["reason"]) == (approval_id, "echo", domain.lower())
    (granted,) = await core.events(event_type="ApprovalGranted")
    assert granted["reason"] == f"learns domain {domain.lower()}"


async def test_a_path_that_the_call_waited_for_is_learned_with_its_approval(tmp_path: Path) -> None:
    async with front_core(tmp_path, filing(), workers=0) as core:
        core.desk.start("fs")
        agent, approval_id = await held(core, path="new/deep/a")
        status, body = await approve(core, approval_id, "?learn_path=new/**")
        assert (status, body["learned_path"]) == (200, "new/**")
        assert await reached(core, agent, {"path": "new/b"}) == ()
        assert await reached(core, agent, {"path": "other/b"}) == ("other/b",)


async def test_an_unresolved_call_runs_once_when_it_is_approved_and_nothing_is_learned_unasked(core: Core) -> None:
    core.desk.start("http")
    agent, approval_id = await held(core, **NEW)
    _, detail = await core.operate("GET", f"/v1/approvals/{approval_id}")
    assert detail["unresolved_domains"] == ["api.new.example"]
    assert detail["approved_egress"]["allowed_domains"] == ["known.example", "api.new.example"]
    status, body = await approve(core, approval_id)
    assert status == 200
    assert not {"learned_domain", "learned_path", "learn_error"} & set(body)
    assert await learned(core) == []
    assert await reached(core, agent, NEW) == ("api.new.example",)


REFUSED = [
    ("learn_domain=*.example", "invalid_domain"),
    ("learn_domain=localhost", "invalid_domain"),
    ("learn_domain=", "invalid_domain"),
    ("learn_path=new/**", "invalid_path"),
    ("learn_path=..", "invalid_path"),
    ("learn_domain=api.new.example&learn_path=x", "invalid_path"),
    ("learn_domain=api.new.example&learn_domain=api.new.example", "invalid_request"),
    ("learn_domains=api.new.example", "invalid_request"),
]


async def test_a_malformed_or_foreign_rule_is_refused_and_the_call_stays_pending(core: Core) -> None:
    core.desk.start("http")
    _agent, approval_id = await held(core, **NEW)
    for query, code in REFUSED:
        status, body = await approve(core, approval_id, "?" + query)
        assert (status, body["error"]) == (400, code), query
        assert body["message"]
        assert await state_of(core, approval_id) == "pending"
    assert await core.events(event_type="ApprovalGranted") == []
    assert (await approve(core, approval_id))[0] == 200
    assert await learned(core) == []


@pytest.mark.parametrize("domain", ["other.example", "new.example", "known.example", "*.api.new.example"])
async def test_a_domain_is_learned_whether_or_not_this_call_needs_it(core: Core, domain: str) -> None:
    core.desk.start("http")
    _agent, approval_id = await held(core, host="known.example")
    status, body = await approve(core, approval_id, f"?learn_domain={domain}")
    assert (status, body["learned_domain"]) == (200, domain)
    assert await learned(core) == [domain]


async def test_a_late_operator_gets_404_with_any_rules(tmp_path: Path) -> None:
    async with front_core(tmp_path, reaching(), workers=0, lease_ttl_seconds=3600) as core:
        _agent, denied = await held(core, **NEW)
        _agent, expired = await held(core, **NEW)
        assert (await core.operate("POST", f"/v1/approvals/{denied}/deny"))[0] == 200
        core.clock.ahead = 301
        for approval_id in (denied, expired, "apr_unknown"):
            for query in ("?learn_domain=api.new.example", "?learn_domain=other.example"):
                assert await approve(core, approval_id, query) == (404, {"error": "approval_not_found"})


async def test_nothing_is_learned_from_a_call_that_failed(tmp_path: Path) -> None:
    async with front_core(tmp_path, reaching("die"), workers=0) as core:
        core.desk.start("http")
        _agent, approval_id = await held(core, action_id="die", **NEW)
        answer = await approve(core, approval_id, "?learn_domain=api.new.example")
        assert answer == (502, {"error": "action_execution_failed"})
        assert await learned(core) == []
        assert await core.events(event_type="DomainAdded") == []


@pytest.mark.parametrize(("operation", "state"), [("MoveHold", "pending"), ("Open", "failed")])
async def test_nothing_is_learned_from_a_call_that_was_not_dispatched(core: Core, operation: str, state: str) -> None:
    core.desk.start("http")
    _agent, approval_id = await held(core, **NEW)
    core.client.faults[operation] = refuses(FULL)
    assert (await approve(core, approval_id, "?learn_domain=api.new.example"))[0] in (500, 503)
    core.client.faults.clear()
    assert await state_of(core, approval_id) == state
    assert await learned(core) == []


async def test_a_lesson_that_can_not_be_kept_does_not_take_the_result_back(core: Core, tmp_path: Path) -> None:
    core.desk.start("http")
    query = "?learn_domain=api.new.example"

    _agent, first = await held(core, **NEW)
    core.client.faults["Close"] = then(lambda: core.client.faults.update(WriteEvent=refuses(FULL)))
    status, body = await approve(core, first, query)
    core.client.faults.clear()
    assert (status, body["learn_error"]) == (200, "evidence_store_unavailable")
    assert "learned_domain" not in body

    _agent, second = await held(core, **NEW)
    core.client.faults["Close"] = then(lambda: (tmp_path / "fronts" / "learned.json").mkdir())
    status, body = await approve(core, second, query)
    core.client.faults.clear()
    (tmp_path / "fronts" / "learned.json").rmdir()
    assert (status, body["learn_error"]) == (200, "learned_rules_unavailable")

    for approval_id in (first, second):
        assert await state_of(core, approval_id) == "approved"
    assert await learned(core) == []


async def test_rules_that_can_not_be_stored_are_reported_before_the_call_runs(core: Core, tmp_path: Path) -> None:
    core.desk.start("http")
    _agent, approval_id = await held(core, **NEW)
    path, query = tmp_path / "fronts" / "learned.json", "?learn_domain=api.new.example"
    at = "2026-11-21T11:12:13.123Z"
    full = Rules(domains=tuple(LearnedRule("echo", f"n{i}.example", "cli", at, "ada") for i in range(MAX_PER_ACTION)))
    write_private(path, encode_rules(full))
    assert await approve(core, approval_id, query) == (409, Coded("too_many_rules"))
    path.write_text("{")
    assert await approve(core, approval_id, query) == (503, {"error": "learned_rules_unavailable"})
    core.client.faults["GetHold"] = refuses(NotaryUnavailable("gone"))
    assert await approve(core, approval_id, query) == (503, {"error": "approval_store_unavailable"})
    core.client.faults.clear()
    assert await state_of(core, approval_id) == "pending"
    assert (await approve(core, approval_id))[0] == 200


async def test_a_rule_that_is_taken_back_does_not_touch_a_plan_that_waits(core: Core) -> None:
    """The plan runs as the operator saw it; an operator who wants otherwise denies it."""
    core.desk.start("http")
    rule = {"action_id": "echo", "domain": "api.new.example"}
    assert (await core.operate("POST", "/v1/admin/domains", rule))[0] == 200
    _agent, approval_id = await held(core, **NEW)
    assert (await core.operate("DELETE", "/v1/admin/domains", rule))[0] == 200
    assert (await approve(core, approval_id))[0] == 200


async def test_a_learned_rule_is_in_the_plan_of_the_next_call_and_of_no_other_action(tmp_path: Path) -> None:
    async with front_core(tmp_path, reaching(), reaching("die"), workers=0) as core:
        core.desk.start("http")
        agent = await core.agent()
        rule = {"action_id": "echo", "domain": "*.new.example"}
        assert (await core.operate("POST", "/v1/admin/domains", rule))[0] == 200
        assert await reached(core, agent, NEW, "die") == ("api.new.example",)
        core.policy.answer = ALLOW
        assert (await agent.call("echo", NEW))[0] == 200
        assert core.policy.questions[-1].unresolved_domains == ()
        core.policy.answer = HOLD
        _, approval = await agent.call("echo", NEW)
        _, detail = await core.operate("GET", f"/v1/approvals/{approval['approval_id']}")
        assert detail["approved_egress"]["allowed_domains"] == ["known.example", "*.new.example"]
        assert detail["unresolved_domains"] == []
