"""A plan runs only with the notary's permit for that very plan, and in a worker of its profile."""

from typing import Any

import msgspec
import pytest

from ipc.plan import CallLimits
from tests.support import worker_wat as wat
from tests.support.worker_plans import builtin, call_of, file_plan, make_plan, text, word_for
from tests.support.worker_runner import Bench

NOT_VERIFIED = "provider_failed_before_verification"


def test_a_plan_that_the_word_is_not_for_runs_nothing(bench: Bench) -> None:
    plan = make_plan(provider_module_digest=bench.add(wat.provider(wat.LOOP)), limits=CallLimits(fuel=2**60))
    other = make_plan(provider_module_digest=plan.provider_module_digest, limits=plan.limits, request='{"a":1}')
    result = bench.run(other, word=word_for(plan))
    assert (result.outcome, result.fuel_consumed) == ("plan_refused", None)
    assert result.verification.outcome == NOT_VERIFIED
    assert result.failure is not None
    assert "another plan" in result.failure.message


@pytest.mark.parametrize(("is_approved", "outcome"), [(True, "success"), (False, "host_io")])
def test_unresolved_targets_are_reached_only_with_a_persons_approval(
    bench: Bench, tmp_path: Any, is_approved: bool, outcome: str
) -> None:
    bench.add(builtin("file_write"))
    plan = file_plan(tmp_path, request=text({"path": "a", "content": "x"}), unresolved_paths=("a",))
    assert plan.files is not None
    plan = msgspec.structs.replace(plan, files=msgspec.structs.replace(plan.files, allowed_paths=("other/**",)))
    result = bench.run(plan, word=word_for(plan, is_approved=is_approved))
    assert result.outcome == outcome
    assert (tmp_path / "a").exists() == is_approved


@pytest.mark.parametrize(
    "changes", [{"profile": "http"}, {"required_imports": ("http",)}, {"required_imports": ("fs", "log")}]
)
def test_a_plan_for_another_profile_is_refused(bench: Bench, changes: dict[str, Any]) -> None:
    plan = make_plan(provider_module_digest=bench.add(builtin("echo")), **changes)
    assert bench.runner("compute").run(call_of(plan), word_for(plan), {}).outcome == "plan_refused"


def test_a_plan_that_asks_for_more_memory_than_a_worker_has_is_refused(bench: Bench) -> None:
    plan = make_plan(provider_module_digest=bench.add(builtin("echo")), limits=CallLimits(memory_mb=1025))
    assert bench.run(plan).outcome == "plan_refused"
