"""The questions to the notary about a call, and the effect of its answers and of its silence on the caller."""

import msgspec
import pytest

from frontend.calls.asking import opening_of, refusal, terms_of, unavailable
from frontend.calls.record import CallRecord
from frontend.calls.withdrawing import withdrawal
from frontend.errors import GateError
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.weakened import Weakened
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.operations.calls import GrantTerms, Open, ProofRecord, Refusal, Withdraw
from ipc.plan import CallLimits, SecretUse, seal
from tests.support.plans import a_plan

LIMITS = CallLimits(fuel=1, memory_mb=2, timeout_seconds=3.0, max_io_calls=4)
PLAN = a_plan(limits=LIMITS, max_response_bytes=5, epoch=6, verifier_kind="http_status")
TERMS = terms_of(seal(PLAN))


def asked(proof: ProofRecord | None = None, **changes: object) -> Open:
    plan = msgspec.structs.replace(PLAN, **changes)
    record = CallRecord.of_plan(plan, IdentityOrigin("peercred"), Weakened())
    record.proof, record.calls_per_hour = proof, 7
    return opening_of(record, seal(plan), "compute-1", True, None)


def test_the_notary_keeps_of_a_plan_what_its_result_is_judged_by() -> None:
    assert GrantTerms(
        plan_hash=seal(PLAN).digest, module_digest="sha256:00", epoch=6, verifier_kind="http_status",
        max_response_bytes=5, fuel=1, memory_mb=2, timeout_seconds=3.0, max_io_calls=4, only_computes=True,
    ) == TERMS  # fmt: skip


def test_each_call_is_opened_under_an_intent_of_its_own_with_its_event_as_far_as_it_is_known() -> None:
    first, second = asked(ProofRecord("key", 0.0)), asked()
    assert first.intent_id != second.intent_id
    assert first.intent_id.startswith("intent_")
    assert (first.worker_id, first.terms, first.proof, first.has_budget) == (
        "compute-1",
        TERMS,
        ProofRecord("key", 0.0),
        True,
    )
    assert (first.calls_per_hour, first.event.decision, first.event.principal) == (7, "allow", "p")
    assert second.proof is None


def test_the_begin_of_a_call_is_awaited_where_its_worker_must_get_secrets_then() -> None:
    assert [asked().wants_begun, asked(secrets=(SecretUse("token"),)).wants_begun] == [False, True]


@pytest.mark.parametrize(("code", "decision"), [("internal_error", "error"), ("draining", "error"),
                                                ("invalid_lease", "deny"), ("plan_integrity", "deny")])  # fmt: skip
def test_a_call_that_is_given_up_is_withdrawn_as_what_it_ended_with(code: str, decision: str) -> None:
    given_up = asked()
    told = withdrawal(given_up, GateError(code, cause="so it is"))
    assert told == Withdraw(given_up.intent_id, decision, code, "so it is")


@pytest.mark.parametrize(
    ("error", "proof", "code"),
    [
        (NotaryUnavailable("x", "budget"), ProofRecord("key", 0.0), "budget_store_unavailable"),
        (NotaryUnavailable("x", "budget"), None, "budget_store_unavailable"),
        (NotaryUnavailable("x", "store"), ProofRecord("key", 0.0), "replay_cache_unavailable"),
        (NotaryUnavailable("x", "store"), None, "evidence_persistence_failed"),
        (NotaryRefused("x"), ProofRecord("key", 0.0), "replay_cache_unavailable"),
        (NotaryRefused("x"), None, "evidence_persistence_failed"),
    ],
)
def test_the_error_of_an_unopened_call_names_the_failed_store(
    error: NotaryUnavailable | NotaryRefused, proof: ProofRecord | None, code: str
) -> None:
    told = unavailable(asked(proof), error)
    assert (told.code, told.cause) == (code, "x")


def test_a_refusal_by_a_quota_names_and_counts_it_and_says_when_to_come_again() -> None:
    metrics = Metrics(dict)
    told = refusal(Refusal("budget_exhausted", "used up", 60, "max_calls_per_hour"), metrics)
    assert (told.code, told.cause, told.retry_after) == ("budget_exhausted", "used up", 60)
    assert told.body() == {"error": "budget_exhausted", "reason": "max_calls_per_hour"}
    assert metrics.quota_exhausted.value("max_calls_per_hour") == 1
    told = refusal(Refusal("budget_exhausted", "none left", 5), metrics)
    assert (told.cause, told.retry_after, told.body()) == ("none left", 5, {"error": "budget_exhausted"})
    assert metrics.quota_exhausted.value("max_calls_per_hour") == 1
