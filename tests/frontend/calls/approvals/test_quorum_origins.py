"""Quorums that policy asks for, embedded and over a real OPA; and quorums of calls that a cap holds."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ipc.configuration.quorum import QuorumRule
from ipc.settings import ApprovalSettings
from tests.frontend.calls.approvals.test_quorums import OPERATORS, approve, ask, needing
from tests.support.front_core import Core, action
from tests.support.opa import Opa, opa
from tests.support.opa_engines import opa_engine
from tests.support.policed import policed

PAY = action(
    "pay", policy_input=["/amount"], io={"max_request_bytes": 8192, "request_schema": {"type": "object"}}
)  # fmt: skip
REGO = """package gateway

import rego.v1

decision := {
	"allow": true, "requires_approval": true, "deny_reason": "", "rule": "two",
	"allowed_sinks": input.requested_sinks, "policy_version": data.policy_version,
	"quorum": {"count": object.get(input.request, "/amount", 1), "groups": {"finance": 1}},
}
"""
ENGINES = ("embedded", "opa")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opa]:
    folder: Path = tmp_path_factory.mktemp("opa")
    (folder / "quorum.rego").write_text(REGO)
    with opa(folder, (str(folder / "quorum.rego"),)) as running:
        yield running


@asynccontextmanager
async def deciding_by(kind: str, server: Opa, folder: Path, *rules: QuorumRule) -> AsyncIterator[Core]:
    """A gateway whose policy asks for as many approvals as the call has for an amount, one of them of finance."""
    settings: dict[str, Any] = {"operators": OPERATORS, "approvals": ApprovalSettings(quorum=rules), "rules": REGO}
    if kind == "embedded":
        async with policed(folder, PAY, is_real=True, **settings) as core:
            yield core
        return
    async with opa_engine(server, folder) as engine, policed(folder, PAY, engine=engine, **settings) as core:
        yield core


async def held(core: Core, amount: object) -> tuple[int, str]:
    agent = await core.agent()
    status, answer = await agent.call("pay", {"amount": amount})
    return status, answer.get("approval_id", answer.get("error", ""))


@pytest.mark.parametrize("kind", ENGINES)
async def test_a_call_needs_the_approvals_that_policy_asks_for(kind: str, server: Opa, tmp_path: Path) -> None:
    async with deciding_by(kind, server, tmp_path) as core:
        status, approval_id = await held(core, 2)
        assert status == 202
        _, detail = await ask(core, "eve", "GET", f"/v1/approvals/{approval_id}")
        assert detail["quorum"] == {"count": 2, "groups": {"finance": 1}}
        assert (await approve(core, "eve", approval_id))[0] == 202
        assert (await approve(core, "ada", approval_id))[0] == 200


@pytest.mark.parametrize("kind", ENGINES)
async def test_quorums_of_policy_and_configuration_must_both_be_met(kind: str, server: Opa, tmp_path: Path) -> None:
    rule = QuorumRule(action_id="pay", count=1, groups={"security": 1})
    async with deciding_by(kind, server, tmp_path, rule) as core:
        _, approval_id = await held(core, 2)
        _, detail = await ask(core, "eve", "GET", f"/v1/approvals/{approval_id}")
        assert detail["quorum"] == {"count": 2, "groups": {"finance": 1, "security": 1}}


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("amount", [0, "2", 33, None])
async def test_a_quorum_that_is_none_is_no_decision(kind: str, amount: object, server: Opa, tmp_path: Path) -> None:
    async with deciding_by(kind, server, tmp_path) as core:
        assert await held(core, amount) == (503, "policy_engine_unavailable")


async def test_a_call_that_a_cap_holds_keeps_its_reservation_until_the_last_approval_and_gives_it_back_on_denial(
    tmp_path: Path,
) -> None:
    cap = {"pointer": "/amount", "per": "all", "window_seconds": 86_400, "hold_above": 50, "deny_above": 100}
    several = needing(2) | {"approvals": ApprovalSettings(quorum=(QuorumRule(action_id="pay", count=2),))}
    async with policed(tmp_path, PAY, data={"allowlist": {}, "caps": {"pay": [cap]}}, **several) as core:
        status, first = await held(core, 60)
        assert status == 202
        status, given = await approve(core, "ada", first)
        assert (status, given["approvals"]["needed"]) == (202, 2)
        assert await held(core, 41) == (403, "policy_denied"), "a hold with one approval of two keeps its 60"
        assert (await approve(core, "bob", first))[0] == 200
        assert await held(core, 41) == (403, "policy_denied"), "it has run, and counts once"
        status, second = await held(core, 40)
        assert status == 202
        assert (await approve(core, "ada", second))[0] == 202
        assert (await held(core, 1))[0] == 403
        assert (await ask(core, "bob", "POST", f"/v1/approvals/{second}/deny"))[0] == 200
        assert (await held(core, 40))[0] == 202, "the denied 40 are there again"
