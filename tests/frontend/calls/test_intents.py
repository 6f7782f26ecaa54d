"""Every kind of verifier that a manifest may name can verify again, or tells the operator why it can't."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import force_setattr

from contract.intents import ExpectedFile
from frontend.auth.authentication import OperatorCaller
from frontend.calls.intents import NOTHING_KEPT, why_not
from frontend.errors import GateError
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from ipc.evidence.records import IntentDetail
from ipc.operations.calls import NoSuchWorker
from ipc.operations.intents import Looked, Unverifiable, VerifyIntent
from ipc.verifiers import VERIFIERS
from tests.support.front_core import Core, Fault, front_core, refuses
from tests.support.held_calls import filing
from tests.support.worker_desk import until

pytestmark = pytest.mark.front(workers=0)

FILE = ExpectedFile(path="a", sha256="sha256:00", bytes=1)


def detail(kind: str | None, expected: ExpectedFile | None = None) -> IntentDetail:
    return IntentDetail(
        intent_id="intent_1", trace_id="trc_1", action_id="a", principal="p", dispatched_at="", age_seconds=1,
        grant_id="grant_1", provider_module="", plan_hash="", approval_id=None, is_under_way=False, last_look=None,
        verifier_kind=kind, expected=expected,
    )  # fmt: skip


@pytest.mark.parametrize("kind", VERIFIERS)
def test_a_kind_without_a_kept_file_says_why_it_can_t_look_again(kind: str) -> None:
    assert why_not(detail(kind)) == (VERIFIERS[kind].cannot_look or NOTHING_KEPT)


def test_a_kind_that_looks_again_needs_the_file_that_was_kept() -> None:
    assert why_not(detail("fs_hash", FILE)) is None
    assert why_not(detail("fs_hash")) == why_not(detail(None)) == NOTHING_KEPT


# ------------------------------------------------------------------ looking again

OPERATOR = OperatorCaller("ada", "jkt", "jti")
LOOKED = Looked("trc_1", "a", {"state": "as_expected"})


def says(answer: object) -> Fault:
    async def fault(_operation: Any, _args: Any, _kwargs: Any) -> Any:
        return answer

    return fault


async def with_worker(core: Core) -> str:
    before = set(core.desk.processes)
    core.desk.start("fs")
    await until(lambda: core.services.pools.census()["fs"].idle == 1)
    (worker_id,) = set(core.desk.processes) - before
    return worker_id


async def code_of(core: Core) -> str:
    with pytest.raises(GateError) as refused:
        await core.services.intents.verify("intent_1", OPERATOR)
    return refused.value.code


async def test_a_worker_that_has_run_nothing_looks_and_the_event_is_the_operator_s_act(core: Core) -> None:
    worker_id = await with_worker(core)
    asked: list[VerifyIntent] = []

    async def hears(_operation: Any, args: Any, _kwargs: Any) -> Looked:
        asked.append(args[0])
        return LOOKED

    core.client.faults |= {"ShowIntent": says(detail("fs_hash", FILE)), "VerifyIntent": hears}
    assert await core.services.intents.verify("intent_1", OPERATOR) == LOOKED
    (question,) = asked
    assert (question.intent_id, question.worker_id) == ("intent_1", worker_id)
    assert (question.event.event_type, question.event.principal) == ("IntentVerification", "operator:ada")
    assert (question.event.operator_sender_binding, question.event.operator_proof_jti) == ("jkt", "jti")
    assert core.desk.kills == []


async def test_a_worker_that_has_run_a_call_is_not_asked_to_look(tmp_path: Path) -> None:
    async with front_core(tmp_path, filing(), workers=0) as core:
        await with_worker(core)
        core.desk.answers_needs = False
        agent = await core.agent()
        assert (await agent.call(body={"path": "known/a"}))[0] == 200
        await until(lambda: core.services.pools.census()["fs"].idle == 1)
        force_setattr(core.services.intents, "worker_wait_seconds", 0.0)
        core.client.faults |= {"ShowIntent": says(detail("fs_hash", FILE)), "VerifyIntent": says(LOOKED)}
        assert await code_of(core) == "overloaded"


async def test_an_unknown_running_or_unverifiable_intent_is_not_looked_at(core: Core) -> None:
    assert await code_of(core) == "intent_not_found"
    for error in (NotaryUnavailable("gone"), NotaryRefused("it is not open")):
        core.client.faults["ShowIntent"] = refuses(error)
        assert await code_of(core) == "ledger_unavailable"
    under_way = msgspec.structs.replace(detail("fs_hash", FILE), is_under_way=True)
    core.client.faults["ShowIntent"] = says(under_way)
    assert await code_of(core) == "intent_under_way"
    core.client.faults["ShowIntent"] = says(detail("http_status"))
    with pytest.raises(GateError, match="intent_not_verifiable") as refused:
        await core.services.intents.verify("intent_1", OPERATOR)
    assert refused.value.extra == {"message": VERIFIERS["http_status"].cannot_look}
    assert "VerifyIntent" not in core.client.asked


@pytest.mark.parametrize(
    ("answer", "code", "is_killed"),
    [
        (says(NoSuchWorker()), "overloaded", False),
        (says(Unverifiable("intent_under_way")), "intent_under_way", False),
        (refuses(NotaryUnavailable("the disk is full")), "evidence_store_unavailable", False),
        (refuses(NotaryRefused("it is not open")), "evidence_store_unavailable", False),
        (refuses(NotarySilent("late")), "evidence_store_unavailable", True),
    ],
    ids=["the worker ended", "it cannot be verified", "no evidence", "refused", "silence"],
)
async def test_a_look_without_an_answer_fails_and_its_worker_is_killed(
    core: Core, answer: Fault, code: str, is_killed: bool
) -> None:
    worker_id = await with_worker(core)
    core.client.faults |= {"ShowIntent": says(detail("fs_hash", FILE)), "VerifyIntent": answer}
    assert await code_of(core) == code
    assert core.desk.kills == ([(worker_id, "it does not tell what it sees")] if is_killed else [])


async def test_without_a_worker_nothing_is_asked(core: Core) -> None:
    core.client.faults["ShowIntent"] = says(detail("fs_hash", FILE))
    core.desk.answers_needs = False
    force_setattr(core.services.intents, "worker_wait_seconds", 0.0)
    assert await code_of(core) == "overloaded"
    assert "VerifyIntent" not in core.client.asked
