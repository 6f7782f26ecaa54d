"""One call, from plan to Result: every outcome, and what is known of it afterwards."""

import resource
import time
from typing import Any

import pytest
from wasmtime import Limits as Limits32
from wasmtime import Memory, MemoryType, Store

from ipc.messages.calling import Call, Result
from ipc.plan import CallLimits, seal
from ipc.walls.limits import data_in_use
from tests.support import worker_wat as wat
from tests.support.worker_plans import builtin, call_of, digest_of, file_plan, make_plan, text, word_for
from tests.support.worker_runner import Bench
from workers.host import calls
from workers.runtime import traps
from workers.runtime.call import Runner

NOT_VERIFIED = "provider_failed_before_verification"


def run(
    bench: Bench, component: bytes, request: str = "{}", secrets: dict[str, str] | None = None, **changes: Any
) -> Result:
    plan = make_plan(provider_module_digest=bench.add(component), request=request, **changes)
    return bench.run(plan, secrets)


def test_a_successful_call_gives_output_fuel_and_time(bench: Bench) -> None:
    result = run(bench, builtin("text_digest"), text({"text": "hello"}))
    assert result.outcome == "success"
    assert result.output is not None
    assert '"bytes":5' in result.output
    assert result.failure is None
    assert result.fuel_consumed is not None
    assert 1000 < result.fuel_consumed < 100_000
    assert result.duration_us > 0
    assert (result.io_calls, result.observations) == (0, ())
    assert result.verification.outcome == "skipped"


def test_the_same_call_takes_the_same_fuel(bench: Bench) -> None:
    first, second = (run(bench, builtin("text_digest"), text({"text": "x" * 500})) for _ in range(2))
    assert first.fuel_consumed == second.fuel_consumed


@pytest.mark.parametrize(
    ("body", "limits", "outcome"),
    [
        (wat.LOOP, CallLimits(fuel=100_000), "fuel"),
        (wat.LOOP, CallLimits(fuel=2**60, timeout_seconds=0.2), "timeout"),
        (wat.UNREACHABLE, CallLimits(), "trap"),
        (wat.DEEP, CallLimits(fuel=10**9), "trap"),
        (wat.DIVIDE, CallLimits(), "trap"),
        (wat.OUT_OF_BOUNDS, CallLimits(), "trap"),
        (wat.BAD_RESULT_POINTER, CallLimits(), "trap"),
        (wat.GROW_THEN_FAIL, CallLimits(memory_mb=16), "memory"),
        (wat.FAIL, CallLimits(), "provider_error"),
        (wat.SUCCEED, CallLimits(), "success"),
    ],
    ids=[
        "fuel", "timeout", "unreachable", "stack", "division", "bounds", "result pointer", "memory", "provider error",
        "success",
    ],
)  # fmt: skip
def test_each_way_of_ending_has_its_outcome(bench: Bench, body: str, limits: CallLimits, outcome: str) -> None:
    result = run(bench, wat.provider(body), limits=limits)
    assert result.outcome == outcome
    if outcome != "success":
        assert result.output is None
        assert result.verification.outcome == NOT_VERIFIED
    assert (result.fuel_consumed is None) == (outcome == "timeout")


def test_a_trap_says_what_the_runtime_says(bench: Bench) -> None:
    result = run(bench, wat.provider(wat.DIVIDE))
    assert result.failure is not None
    assert result.failure.message == "wasm trap: integer divide by zero"


def test_a_call_out_of_fuel_has_used_all_of_it(bench: Bench) -> None:
    assert run(bench, wat.provider(wat.LOOP), limits=CallLimits(fuel=12_345)).fuel_consumed == 12_345


def test_a_call_without_end_ends_after_its_deadline_and_not_before(bench: Bench) -> None:
    begun = time.monotonic()
    run(bench, wat.provider(wat.LOOP), limits=CallLimits(fuel=2**60, timeout_seconds=0.1))
    assert time.monotonic() - begun >= 0.1


def test_a_call_after_one_that_timed_out_is_not_disturbed(bench: Bench) -> None:
    runner = bench.runner()
    digest, echo = bench.add(wat.provider(wat.LOOP)), bench.add(builtin("echo"))
    slow = make_plan(provider_module_digest=digest, limits=CallLimits(fuel=2**60, timeout_seconds=0.05))
    quick = make_plan(provider_module_digest=echo)
    for _ in range(5):
        assert runner.run(call_of(slow), word_for(slow), {}).outcome == "timeout"
        assert runner.run(call_of(quick), word_for(quick), {}).outcome == "success"


def test_time_spent_in_host_calls_counts(bench: Bench) -> None:
    result = run(
        bench, builtin("spin"), text({"seconds": 5}), required_imports=("clock",),
        limits=CallLimits(fuel=2**60, timeout_seconds=0.2),
    )  # fmt: skip
    assert result.outcome == "timeout"


def test_the_caller_may_give_less_time_than_the_plan(bench: Bench) -> None:
    plan = make_plan(provider_module_digest=bench.add(wat.provider(wat.LOOP)), limits=CallLimits(fuel=2**60))
    assert bench.runner().run(Call("c1", seal(plan).encoded, 0.1), word_for(plan), {}).outcome == "timeout"


def test_a_module_that_needs_more_memory_than_its_limit_never_starts(bench: Bench) -> None:
    result = run(bench, wat.provider(wat.SUCCEED, pages=32), limits=CallLimits(memory_mb=1))
    assert (result.outcome, result.fuel_consumed) == ("memory", 0)


def test_growth_beyond_the_limit_is_refused_to_the_guest(bench: Bench) -> None:
    result = run(
        bench, builtin("spin"), text({"memory_mb": 200}), required_imports=("clock",), limits=CallLimits(memory_mb=64)
    )  # fmt: skip
    assert result.outcome == "memory"
    assert result.failure is not None
    assert result.failure.kind == "too-large"
    assert run(
        bench, builtin("spin"), text({"memory_mb": 50}), required_imports=("clock",), limits=CallLimits(memory_mb=64)
    ).outcome == "success"  # fmt: skip


def test_a_store_gives_its_memory_back(bench: Bench) -> None:
    run(bench, builtin("spin"), text({"memory_mb": 50}), required_imports=("clock",))
    before = data_in_use()
    for _ in range(3):
        run(bench, builtin("spin"), text({"memory_mb": 50}), required_imports=("clock",))
    assert data_in_use() - before < 2**23, "more than what this process takes for itself, a mebibyte at a time"


@pytest.mark.parametrize("can_read", [True, False], ids=["told by the kernel", "behind walls"])
def test_the_memory_of_a_store_is_what_it_gives_back(
    bench: Bench, can_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> int:
        raise PermissionError

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with Store(bench.engine) as store:
        memory = Memory(store, MemoryType(Limits32(800, None)))
        assert memory.size(store) == 800
        if not can_read:
            resource.setrlimit(resource.RLIMIT_DATA, (data_in_use() + 2**28, hard))
            monkeypatch.setattr(traps, "data_in_use", refused)
        try:
            assert abs(traps.memory_of(store) - 800 * 65_536) < 2**20
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def test_a_start_function_is_bound_by_the_same_limits(bench: Bench) -> None:
    start = "(func $s (loop $again (br $again))) (start $s)"
    assert run(bench, wat.provider(wat.SUCCEED, start=start), limits=CallLimits(fuel=10_000)).outcome == "fuel"
    result = run(bench, wat.provider(wat.SUCCEED, start="(func $s unreachable) (start $s)"))
    assert result.outcome == "trap"


def test_a_provider_error_keeps_its_fields(bench: Bench) -> None:
    result = run(bench, wat.provider(wat.FAIL), '{"why":"no"}')
    assert result.failure is not None
    assert (result.failure.kind, result.failure.message, result.failure.details, result.failure.retryable) == (
        "conflict", '{"why":"no"}', None, True,
    )  # fmt: skip


def test_a_long_message_of_a_provider_is_cut(bench: Bench) -> None:
    result = run(bench, wat.provider(wat.FAIL, pages=4), text({"v": "é" * 50_000}))
    assert result.failure is not None
    assert 1000 <= len(result.failure.message) <= 2000


@pytest.mark.parametrize(
    ("request_text", "cap", "outcome"),
    [
        ("[]", 1000, "bad_output"),
        ("not json", 1000, "bad_output"),
        ("", 1000, "bad_output"),
        ('{"a":1,"a":2}', 1000, "bad_output"),
        (text({"v": "x" * 2000}), 1000, "bad_output"),
        (text({"v": "é" * 300}), 1000, "success"),
    ],
)
def test_an_output_that_is_no_plain_object_is_bad(bench: Bench, request_text: str, cap: int, outcome: str) -> None:
    result = run(bench, builtin("echo"), request_text, max_response_bytes=cap)
    assert result.outcome == outcome
    assert (result.output is None) == (outcome == "bad_output")


def test_an_output_outside_its_schema_is_reported_with_the_output(bench: Bench) -> None:
    schema = text({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    good = run(bench, builtin("echo"), '{"n":1}', response_schema=schema)
    assert good.outcome == "success"
    bad = run(bench, builtin("echo"), '{"n":"s3cret"}', response_schema=schema)
    assert (bad.outcome, bad.output) == ("response_schema", '{"n":"s3cret"}')
    assert bad.failure is not None
    assert bad.failure.message == "/n: type"
    assert bad.verification.outcome == NOT_VERIFIED
    lax = run(bench, builtin("echo"), '{"n":"s3cret"}', response_schema=schema, enforce_response_schema=False)
    assert (lax.outcome, lax.output, lax.violation) == ("success", '{"n":"s3cret"}', "/n: type")
    assert good.violation is None


def test_a_module_that_this_worker_does_not_have_is_missing(bench: Bench) -> None:
    plan = make_plan(provider_module_digest=digest_of(b"something else"))
    assert bench.run(plan).outcome == "module_missing"


def test_a_module_gets_no_import_that_the_plan_does_not_list(bench: Bench) -> None:
    plan = make_plan(provider_module_digest=bench.add(builtin("spin")), request=text({"fuel": 1}))
    assert bench.run(plan).outcome not in ("success", "provider_error")


def test_a_host_failure_that_fails_the_provider_is_host_io(bench: Bench, tmp_path: Any) -> None:
    bench.add(builtin("file_write"))
    result = bench.run(file_plan(tmp_path, request=text({"path": "../x", "content": "y"})))
    assert result.outcome == "host_io"
    assert result.failure is not None
    assert result.failure.kind == "invalid-input"
    assert result.io_calls == 1
    assert [observation.ok for observation in result.observations] == [False]


def test_a_call_beyond_its_io_budget_ends_whatever_the_provider_would_do(bench: Bench, tmp_path: Any) -> None:
    steps = [{"operation": "write", "path": f"f{number}", "data": "x"} for number in range(5)]
    plan = file_plan(
        tmp_path, provider_module_digest=bench.add(builtin("fs_probe")), request=text({"steps": steps}),
        limits=CallLimits(max_io_calls=3),
    )  # fmt: skip
    result = bench.run(plan)
    assert (result.outcome, result.io_calls, len(result.observations)) == ("io_calls", 3, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f0", "f1", "f2"]


def test_no_io_at_all_is_a_budget_too(bench: Bench, tmp_path: Any) -> None:
    bench.add(builtin("file_write"))
    plan = file_plan(tmp_path, request=text({"path": "a", "content": ""}), limits=CallLimits(max_io_calls=0))
    assert bench.run(plan).outcome == "io_calls"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "exception", [KeyError("x"), SystemExit(3), KeyboardInterrupt(), MemoryError(), GeneratorExit()]
)
def test_no_exception_leaves_a_host_function(
    bench: Bench, exception: BaseException, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def broken(*_: Any) -> Any:
        raise exception

    monkeypatch.setattr(calls.HostFunctions, "_files", broken)
    bench.add(builtin("file_write"))
    result = bench.run(file_plan(tmp_path, request=text({"path": "a", "content": ""})))
    assert result.outcome == "host_io"
    assert result.failure is not None
    assert result.failure.kind == "internal"


def test_the_runner_keeps_nothing_of_a_call(bench: Bench) -> None:
    runner: Runner = bench.runner()
    plan = make_plan(provider_module_digest=bench.add(builtin("echo")))
    assert runner.run(call_of(plan), word_for(plan), {}).outcome == "success"
    assert runner._functions.current is None
