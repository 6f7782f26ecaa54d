"""An operator asks the front to explain a call: the decision, its code and rule, and the assumptions."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import force_setattr

from frontend.errors import GateError
from frontend.policy.question import Decision, Question
from ipc.settings import IdentitySettings, PrincipalMapping
from tests.support.front_core import DENY, DIGEST, HOLD, Core, action, front_core, registry_of
from tests.support.held_calls import filing

ME = "dev:anonymous"
NAMELESS = "No identity mapping names this principal: no owner, and the scope tools:call."
ACTIONS = (
    action(), action("pay", declared_side_effects=["http_write"]),
    action("free", io={"max_request_bytes": 64, "request_schema": {"type": "object"}}),
)  # fmt: skip

pytestmark = pytest.mark.front(*ACTIONS, workers=0)


async def explained(core: Core, action_id: str = "echo", **more: Any) -> tuple[int, Any]:
    asked = {"principal": ME, "action_id": action_id, "request": {"n": 1}} | more
    return await core.operate("POST", "/v1/admin/policy/explain", asked)


async def told(core: Core, *names: str, **more: Any) -> tuple[Any, ...]:
    status, body = await explained(core, **more)
    assert status == 200, body
    return tuple(body[name] for name in names)


async def test_an_allowed_call_is_explained_with_its_rule_and_leaves_no_trace(core: Core) -> None:
    status, body = await explained(core)
    request_hash = body.pop("request_hash")
    assert (status, body) == (
        200,
        {
            "principal": ME, "action_id": "echo", "decision": "allow", "error_code": None, "rule": "allow",
            "reason": None, "policy_version": "p1", "assumed": [NAMELESS],
        },
    )  # fmt: skip
    assert core.policy.questions[0].request_hash == request_hash
    assert await core.events() == []


async def test_a_held_and_a_denied_call_are_distinguished(core: Core) -> None:
    core.policy.answer = HOLD
    assert await told(core, "decision", "error_code", "rule") == ("pending_approval", None, "hold")
    core.policy.answer = DENY
    wanted = ("deny", "policy_denied", "acl", "not you", "p1")
    assert await told(core, "decision", "error_code", "rule", "reason", "policy_version") == wanted


class Stingy:
    def __init__(self, *sinks: str) -> None:
        self.sinks = sinks

    async def decide(self, _question: Question) -> Decision:
        return Decision(True, False, "", "allow", self.sinks, "p1")


@pytest.mark.parametrize(
    ("sinks", "wanted"),
    [
        ((), ("deny", "policy_denied", "policy does not allow every sink of this action")),
        (("http_write",), ("allow", None, None)), (("http_write", "http_read"), ("allow", None, None)),
    ],
)  # fmt: skip
async def test_a_sink_that_policy_does_not_allow_refuses_the_call(
    core: Core, sinks: tuple[str, ...], wanted: tuple[str | None, ...]
) -> None:
    force_setattr(core.services.explaining, "policy", Stingy(*sinks))
    assert await told(core, "decision", "error_code", "reason", action_id="pay") == wanted


@pytest.mark.parametrize(
    ("digest", "verdict", "code"),
    [(DIGEST, "mismatch", "action_digest_mismatch"), ("sha256:" + "8" * 64, "ok", "action_not_registered")],
)
async def test_policy_is_not_asked_about_an_untrusted_module(
    core: Core, tmp_path: Path, digest: str, verdict: str, code: str
) -> None:
    doubted = action(provider_module_digest=digest)
    core.services.configuration.current.registry = registry_of(tmp_path / "doubted", doubted, verdict=verdict)
    assert await told(core, "decision", "error_code", "rule") == ("deny", code, None)
    assert core.policy.questions == []


async def test_a_budget_that_is_used_up_refuses_and_one_call_that_is_left_does_not(core: Core) -> None:
    found = await told(core, "decision", "error_code", "rule", calls_remaining=0)
    assert found == ("deny", "budget_exhausted", "allow")
    assert await told(core, "decision", calls_remaining=1) == ("allow",)
    assert [one.calls_remaining for one in core.policy.questions] == [0, 1]


async def test_a_budget_is_explained_as_large_as_a_lease_may_have_it(core: Core) -> None:
    assert await told(core, "decision", calls_remaining=2**53 - 1) == ("allow",)
    assert (await explained(core, calls_remaining=2**53))[0] == 400


async def test_nothing_is_explained_of_the_entry_that_is_no_principal(core: Core) -> None:
    assert (await explained(core, principal="*"))[1]["error"] == "invalid_input"


async def test_an_invalid_request_is_explained_with_its_problems(core: Core) -> None:
    refused = await told(core, "decision", "error_code", "reason", "rule", request={})
    assert refused == ("deny", "schema_violation", "/n: is missing", None)
    large = await told(core, "error_code", "reason", action_id="free", request={"n": "x" * 64})
    assert large == ("body_too_large", "max_request_bytes of the action")


async def test_a_denied_path_is_explained_as_a_call_would_be(core: Core, tmp_path: Path) -> None:
    core.services.configuration.current.registry = registry_of(tmp_path / "filing", filing())
    denied = await told(core, "error_code", "reason", request={"path": "secret/x"})
    assert denied == ("policy_denied", "the action's manifest denies this path")
    code, reason = await told(core, "error_code", "reason", request={"path": "../x"})
    assert (code, reason.partition(": ")[0]) == ("schema_violation", "/path")


async def test_without_a_request_an_empty_one_is_supposed_and_said(core: Core) -> None:
    assert await told(core, "assumed", action_id="free", request=None) == (["The request is {}.", NAMELESS],)
    assert await told(core, "assumed", action_id="free", request={}) == ([NAMELESS],)
    assert await told(core, "error_code", request=None) == ("schema_violation",)


async def test_the_configured_facts_of_a_principal_are_in_the_question(tmp_path: Path) -> None:
    mapping = PrincipalMapping(principal="billing", owner="team", scopes=("tools:call", "bank:pay"))
    identity = IdentitySettings(provider="none", principals={"uid:7": mapping})
    async with front_core(tmp_path, *ACTIONS, workers=0, identity=identity) as core:
        assumed = ["The lease has every scope that it may have: tools:call, bank:pay."]
        assert await told(core, "assumed", principal="billing") == (assumed,)
        (question,) = core.policy.questions
        assert (question.principal, question.owner, question.scopes) == ("billing", "team", mapping.scopes)


async def test_an_action_that_is_not_there_is_404_with_those_that_are_close(core: Core) -> None:
    assert await explained(core, "ecko") == (404, {"error": "action_not_found", "did_you_mean": ["echo"]})
    assert await explained(core, "elsewhere") == (404, {"error": "action_not_found"})


async def test_without_policy_nothing_is_explained(core: Core) -> None:
    core.policy.answer = GateError("policy_engine_unavailable")
    assert await explained(core) == (503, {"error": "policy_engine_unavailable"})
