"""Roles of operators: each route of the admin interface names those of which an operator needs one."""

from pathlib import Path

from frontend.api.route import Auth
from frontend.api.routes import ROUTES
from frontend.auth.operators import Operators
from ipc.configuration.roles import OPERATOR_ROLES
from ipc.settings import IdentitySettings, OperatorSettings, PrincipalMapping
from tests.support.coded import Coded
from tests.support.front_core import API_KEY, HOLD, Core, front_core
from tests.support.held_calls import approve, held, state_of

MAPPED = IdentitySettings(principals={"1004": PrincipalMapping("billing", owner="team-a")})
EXAMPLES = {"approval_id": "apr_1", "receipt_id": "rcpt_1", "intent_id": "intent_1", "session_id": "ses_1"}


def become(core: Core, *roles: str, owner: str | None = None) -> None:
    one = OperatorSettings("op", dpop_jkt=core.operator_key.jkt, api_key=API_KEY, roles=roles, owner=owner)
    core.services.authentication.operators.follow(Operators([one]))


async def held_of_user(core: Core, uid: int) -> str:
    core.policy.answer = HOLD
    status, pending = await (await core.agent(uid=uid)).call("echo", {"n": 1})
    assert status == 202
    return str(pending["approval_id"])


async def test_every_operators_route_is_refused_to_one_who_has_only_the_other_roles(core: Core) -> None:
    for route in ROUTES:
        if route.auth is not Auth.OPERATOR:
            continue
        assert route.roles, route.path
        become(core, *(role for role in OPERATOR_ROLES if role not in route.roles))
        path = route.path
        for name in route.operation.segments:
            path = path.replace("{" + name + "}", EXAMPLES.get(name, "some"))
        status, body = await core.operate(route.method, path)
        assert (status, body["error"]) == (403, "role_required"), (route.path, body)
        assert " or ".join(role for role in OPERATOR_ROLES if role in route.roles) in body["message"]
        core.clock.ahead += 1
        core.services.rates = type(core.services.rates)()  # no bucket of a second ago is asked


async def test_a_reader_sees_a_held_call_and_decides_nothing_until_a_reload_gives_the_role(core: Core) -> None:
    _, approval_id = await held(core)
    path = f"/v1/approvals/{approval_id}"
    become(core, "read")
    assert (await core.operate("GET", path))[0] == 200
    for verb in ("approve", "deny"):
        assert await core.operate("POST", f"{path}/{verb}") == (403, Coded("role_required"))
    assert await state_of(core, approval_id) == "pending"
    (refused,) = await core.events(event_type="OperatorAuthFailed", decision="deny")
    assert refused["error_code"] == "role_required"
    assert refused["attempts"]["operator"] == "op"
    become(core, "approve")
    assert (await core.operate("GET", "/v1/approvals"))[0] == 200
    assert (await core.operate("GET", "/v1/audit/events"))[0] == 403
    assert (await core.operate("POST", f"{path}/approve"))[0] == 200


async def test_to_teach_a_rule_by_an_approval_needs_the_role_that_changes_rules(core: Core) -> None:
    _, approval_id = await held(core)
    become(core, "approve")
    for query in ("learn_domain=bank.example", "learn_path=a"):
        status, body = await approve(core, approval_id, f"?{query}")
        assert (status, body["error"]) == (403, "role_required")
        assert "administer" in body["message"]
    assert await state_of(core, approval_id) == "pending"
    (refused,) = await core.events(event_type="OperatorAuthFailed")
    assert (refused["error_code"], refused["attempts"]["operator"]) == ("role_required", "op")


async def test_an_operator_denies_and_does_not_approve_a_call_of_their_own(tmp_path: Path) -> None:
    async with front_core(tmp_path, identity=MAPPED) as core:
        approval_id = await held_of_user(core, 1004)
        become(core, *OPERATOR_ROLES, owner="team-a")
        assert await approve(core, approval_id) == (403, Coded("own_request"))
        assert await state_of(core, approval_id) == "pending"
        (refused,) = await core.events(event_type="OperatorAuthFailed")
        assert (refused["error_code"], refused["attempts"]["operator"]) == ("own_request", "op")
        (held_event,) = await core.events(event_type="ActionCall")
        assert refused["trace_id"] == held_event["trace_id"], "it names the call"
        become(core, *OPERATOR_ROLES, owner="team-b")
        assert (await approve(core, approval_id))[0] == 200
        approval_id = await held_of_user(core, 1004)
        become(core, *OPERATOR_ROLES, owner="team-a")
        assert (await core.operate("POST", f"/v1/approvals/{approval_id}/deny"))[0] == 200
