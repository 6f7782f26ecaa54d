"""The caller's trace that a request names, and the times of a call's steps."""

import pytest

from frontend.calls.call_trace import CallTrace
from frontend.calls.ended_calls import traceparent_of
from frontend.http.requests import Request
from ipc.messages.calling import HostCallTime, Observation, Result, Verification
from ipc.messages.exporting import HostCallSpan, TimedStep

GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def ran(took_us: int, *seen: tuple[Observation, HostCallTime]) -> Result:
    return Result(
        "intent_1", "success", "{}", None, Verification("unverifiable"), tuple(one for one, _ in seen), 1, took_us,
        len(seen), host_times=tuple(at for _, at in seen),
    )  # fmt: skip


def sent(*values: str) -> str:
    return traceparent_of(Request("POST", "/", headers=[("traceparent", value) for value in values]))


@pytest.mark.parametrize(("value", "taken"), [(GOOD, GOOD), (f"cc{GOOD[2:]}-later", f"cc{GOOD[2:]}")])
def test_a_traceparent_of_the_form_of_the_standard_is_taken(value: str, taken: str) -> None:
    assert sent(value) == taken


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        GOOD.upper(),
        f"ff{GOOD[2:]}",
        f"{GOOD}-more",
        f"{GOOD}\n",
        f" {GOOD}",
        GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        GOOD.replace("00f067aa0ba902b7", "0" * 16),
        f"{GOOD[:-1]}",
        f"cc{GOOD[2:]}later",
    ],
)
def test_any_other_text_is_no_trace(value: str) -> None:
    assert sent(value) == ""


def test_two_traceparents_are_none() -> None:
    assert sent(GOOD, GOOD) == ""


def test_the_worker_s_part_stands_between_intent_and_receipt() -> None:
    trace = CallTrace(policy=(10.001, 10.002), notary=(10.003, 10.010), writes_us=(1000, 2000), result=ran(3000))
    assert [(one.step, round(one.begins, -1), round(one.ends, -1)) for one in trace.steps(10.0)] == [
        ("policy", 1000, 2000), ("notary open", 3000, 4000), ("worker", 5000, 8000), ("notary close", 8000, 10000),
    ]  # fmt: skip


def test_a_worker_that_says_too_much_stays_within_its_call() -> None:
    trace = CallTrace(notary=(10.003, 10.010), writes_us=(1000, 2000), result=ran(90_000_000))
    steps = trace.steps(10.0)
    assert all(2990 <= one.begins <= one.ends <= 10010 for one in steps)


def test_a_call_that_ended_before_policy_has_no_steps() -> None:
    assert CallTrace().steps(1.0) == ()


def test_the_steps_of_a_denied_call_are_those_it_came_to() -> None:
    assert [one.step for one in CallTrace(policy=(1.0, 1.5)).steps(1.0)] == ["policy"]
    assert isinstance(CallTrace(policy=(1.0, 1.5)).steps(1.0)[0], TimedStep)


def test_a_request_to_the_upstream_is_told_by_its_method_and_status() -> None:
    seen = (Observation("http", "POST https://up.example/a-value", ok=True, status=200), HostCallTime(500, 1000))
    trace = CallTrace(notary=(10.0, 10.010), writes_us=(1000, 2000), result=ran(3000, seen))
    (told,) = trace.host_calls(10.0)
    assert (told.kind, told.operation, told.status, told.error) == ("http", "POST", 200, "")
    assert (round(told.begins, -1), round(told.ends, -1)) == (5500, 6500)


@pytest.mark.parametrize(
    ("seen", "operation", "status", "error"),
    [
        (Observation("http", "a-secret https://up.example", ok=True, status=2**40), "_OTHER", 0, ""),
        (Observation("http", "GET https://up.example", ok=False, status=-1, error="a-secret: x"), "GET", 0, "_OTHER"),
        (Observation("fs", "write a-path", ok=False, error="denied: not in its paths"), "write", 0, "denied"),
    ],
)
def test_a_text_of_a_worker_s_own_is_in_no_span(seen: Observation, operation: str, status: int, error: str) -> None:
    trace = CallTrace(notary=(10.0, 10.010), writes_us=(0, 0), result=ran(3000, (seen, HostCallTime(2**60, 2**60))))
    (told,) = trace.host_calls(10.0)
    assert told == HostCallSpan(seen.kind, operation, told.begins, told.ends, status, error)
    assert told.begins == told.ends <= 10_000


def test_a_host_call_of_no_kind_has_no_span() -> None:
    trace = CallTrace(
        notary=(10.0, 10.010), writes_us=(0, 0), result=ran(1, (Observation("odd", "x", ok=True), HostCallTime(0, 0)))
    )
    assert trace.host_calls(10.0) == ()
