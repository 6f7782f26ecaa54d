"""Every kind of verifier that a manifest may name can look again, or the operator is told why not."""

import pytest

from frontend.calls.intents import CANNOT_LOOK, NOTHING_KEPT, why_not
from frontend.manifests.sections import VERIFIERS
from ipc.evidence import ExpectedEffect, IntentDetail

FILE = ExpectedEffect(path="a", sha256="sha256:00", bytes=1)


def detail(kind: str | None, expected: ExpectedEffect | None = None) -> IntentDetail:
    return IntentDetail(
        intent_id="intent_1", trace_id="trc_1", action_id="a", principal="p", dispatched_at="", age_seconds=1,
        grant_id="grant_1", provider_module="", plan_hash="", approval_id=None, is_under_way=False, last_look=None,
        verifier_kind=kind, expected=expected,
    )  # fmt: skip


def test_the_table_has_every_kind_but_the_one_that_looks_again() -> None:
    assert {*CANNOT_LOOK, "fs_hash"} == set(VERIFIERS)


@pytest.mark.parametrize("kind", CANNOT_LOOK)
def test_a_kind_that_can_t_look_again_says_why(kind: str) -> None:
    assert why_not(detail(kind)) == CANNOT_LOOK[kind]


def test_one_that_could_needs_what_was_kept() -> None:
    assert why_not(detail("fs_hash", FILE)) is None
    assert why_not(detail("fs_hash")) == why_not(detail(None)) == NOTHING_KEPT
