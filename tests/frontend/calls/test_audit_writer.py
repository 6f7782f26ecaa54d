"""Evidence that has no receipt: whose act it was, how it ended, and that it is durable or fails."""

from typing import Any

import pytest

from frontend.auth.authentication import OperatorCaller
from frontend.auth.identity import Identity
from frontend.calls.audit_writer import bounded
from frontend.errors import GateError
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from ipc.evidence.events import ACTION_CALL, ADMIN_DRAIN, GATEWAY_STARTED, LEASE_ISSUED
from tests.support.front_core import Core, refuses

pytestmark = pytest.mark.front(workers=0)


async def newest(core: Core, *names: str) -> tuple[Any, ...]:
    event = (await core.events())[0]
    return tuple(event.get(name) for name in names)


LOCAL = Identity("agent", None, "team", "peercred")


async def test_an_operators_event_names_the_operator_the_key_and_the_proof(core: Core) -> None:
    await core.services.journal.operator_act(ADMIN_DRAIN, OperatorCaller("ada", "jkt", "jti"), reason="why")
    assert await newest(core, "event_type", "principal", "identity_method", "decision", "reason") == (
        "AdminDrain", "operator:ada", "operator", "allow", "why",
    )  # fmt: skip
    assert await newest(core, "operator_sender_binding", "operator_proof_jti") == ("jkt", "jti")


async def test_the_gateways_own_event_names_the_weakened_rules(core: Core) -> None:
    await core.services.journal.own(GATEWAY_STARTED)
    assert await newest(core, "event_type", "principal", "decision", "dev_mode", "reason") == (
        "GatewayStarted", "gateway", "allow", True, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "decision"),
    [("identity_forbidden", "deny"), ("internal_error", "error"), ("identity_provider_unavailable", "error")],
)
async def test_the_event_of_a_refused_lease_names_its_principal(core: Core, code: str, decision: str) -> None:
    await core.services.journal.lease_refused(GateError(code, cause="so it is"), LOCAL)
    assert await newest(core, "event_type", "decision", "error_code", "reason", "principal", "owner") == (
        LEASE_ISSUED, decision, code, "so it is", "agent", "team",
    )  # fmt: skip


@pytest.mark.parametrize(("event_type", "operation"), [(ACTION_CALL, "Refuse"), (LEASE_ISSUED, "WriteEvent")])
async def test_an_unwritten_event_is_no_evidence(core: Core, event_type: str, operation: str) -> None:
    journal = core.services.journal
    for error in (NotaryUnavailable("the disk is full"), NotaryRefused("it is not open")):
        core.client.faults[operation] = refuses(error)
        with pytest.raises(GateError, match="evidence_store_unavailable") as refused:
            await journal.refused(journal.event(event_type, decision="deny", error_code="invalid_lease"))
        assert refused.value.cause == str(error)
    core.client.faults.clear()
    await journal.refused(journal.event(event_type, decision="deny", error_code="invalid_lease"))
    assert await newest(core, "event_type", "decision") == (event_type, "deny")


def test_texts_that_others_wrote_are_cut_and_cleaned_and_nothing_else_is() -> None:
    strange = "a\x00\u202eb" + "c" * 600
    fields = {"reason": strange, "deny_reason": strange, "error_code": "x\x00", "attempts": {"count": 1}}
    clean = "ab" + "c" * 498
    assert bounded(fields) == {"reason": clean, "deny_reason": clean, "error_code": "x\x00", "attempts": {"count": 1}}
    assert bounded({"reason": None}) == {"reason": None}
