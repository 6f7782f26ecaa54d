"""The agent's flows in a world without sockets: waiting for an operator."""

from typing import Any

import pytest
from gateway_client import (
    ActionFailed,
    AlreadyExecuted,
    ApprovalDenied,
    ApprovalEnded,
    ApprovalPending,
    Executed,
    GatewayError,
    ProtocolViolation,
    Unreachable,
)
from gateway_client.wire.exchange import ReceivedAnswer

from tests.support.played_gateway import HELD, RECEIPT, Reply, World, answer, core_in, execute, polled, refusal

POLL = "/v1/approvals/apr_1/poll"


def wait(world: World, **options: Any) -> Executed:
    executed = world.run(core_in(world).execute("a", {}, waits=True, **options))
    assert isinstance(executed, Executed)
    return executed


def test_waiting_polls_at_the_gateways_pace_and_tells_from_the_receipt() -> None:
    replies: list[Reply] = [
        answer(202, HELD),
        polled("pending", retry_after_seconds=2),
        polled("claimed", retry_after_seconds=1),
        polled("approved", receipt_id="rcpt_1"),
        answer(200, RECEIPT),
    ]
    world = World(replies=replies)
    executed = wait(world)
    assert world.paused == [2.0, 1.0]
    assert (executed.receipt_id, executed.output, executed.verification_outcome) == ("rcpt_1", {"n": 1}, "verified")
    assert (executed.approval_id, executed.trace_id) == ("apr_1", "trc_1")
    assert executed.is_fully_successful
    assert executed.receipt is not None


def test_a_waiting_program_knows_its_hold_before_the_first_poll() -> None:
    world = World(replies=[answer(202, HELD), polled("approved", receipt_id="rcpt_1"), answer(200, RECEIPT)])
    told: list[tuple[str, list[Reply]]] = []
    wait(world, on_held=lambda held: told.append((held.approval_id, list(world.replies))))
    [(approval_id, left)] = told
    assert approval_id == "apr_1"
    assert len(left) == 2


def test_waiting_for_a_call_that_is_not_held_just_gives_its_result() -> None:
    world = World()
    assert wait(world, on_held=lambda _: pytest.fail("it is not held")).receipt is None
    assert world.paused == []


@pytest.mark.parametrize(
    ("state", "kind", "code", "may_have_run"),
    [
        ("denied", ApprovalDenied, "approval_denied", False),
        ("expired", ApprovalEnded, "approval_expired", False),
        ("failed", ApprovalEnded, "approval_failed", True),
        ("approved, failed", ApprovalEnded, "approval_failed", True),
        ("approved", ProtocolViolation, "protocol_violation", True),
    ],
)
def test_a_hold_that_ends_otherwise_is_an_error_with_its_code(
    state: str, kind: type[GatewayError], code: str, may_have_run: bool
) -> None:
    state, _, outcome = state.partition(", ")
    more = {"outcome": outcome} if outcome else {}
    world = World(replies=[answer(202, HELD), polled(state, deny_reason="no", reason="why", **more)])
    with pytest.raises(kind) as raised:
        wait(world)
    assert (raised.value.code, raised.value.approval_id, raised.value.trace_id) == (code, "apr_1", "trc_1")
    assert raised.value.may_have_run is may_have_run


def test_an_approved_call_whose_provider_failed_is_an_action_that_failed_with_its_receipt() -> None:
    failed = RECEIPT | {"normalized_result": {"kind": "timeout", "reason": "too slow"}}
    world = World(replies=[answer(202, HELD), polled("approved", receipt_id="rcpt_1"), answer(200, failed)])
    with pytest.raises(ActionFailed) as raised:
        wait(world)
    assert (raised.value.receipt_id, raised.value.reason, raised.value.may_have_run) == ("rcpt_1", "too slow", True)


@pytest.mark.parametrize(
    "problem",
    [
        refusal(503, "ledger_unavailable"), refusal(429, "rate_limit_exceeded"), refusal(404, "receipt_not_found"),
        Unreachable("unreachable", was_sent=False), answer(200, {}),
    ],
)  # fmt: skip
def test_a_call_whose_receipt_cannot_be_read_has_run_and_its_error_names_the_receipt(problem: Reply) -> None:
    with pytest.raises(AlreadyExecuted) as raised:
        wait(World(replies=[answer(202, HELD), polled("approved", receipt_id="rcpt_1"), problem]))
    assert (raised.value.receipt_id, raised.value.approval_id) == ("rcpt_1", "apr_1")
    assert (raised.value.may_have_run, raised.value.is_retryable) == (True, False)


def test_a_wait_ends_with_its_time_and_the_hold_can_be_polled_on() -> None:
    world = World(replies=[answer(202, HELD), polled("pending", retry_after_seconds=2)])
    core = core_in(world)
    with pytest.raises(ApprovalPending) as raised:
        world.run(core.execute("a", {}, waits=True, timeout=9))
    assert sum(world.paused) <= 9
    assert raised.value.approval_id == "apr_1"
    assert raised.value.may_have_run
    assert world.run(core.poll("apr_1")).state == "pending"


def test_a_wait_survives_a_gateway_that_is_away_for_a_while() -> None:
    replies: list[Reply] = [
        answer(202, HELD),
        Unreachable("unreachable", was_sent=False),
        refusal(503, "replay_cache_unavailable"),
        refusal(502, "gateway_broke_off"),
        refusal(504, "gateway_timeout"),
        ReceivedAnswer(502, {"content-type": "text/html"}, b"<h1>Bad gateway</h1>"),
        polled("approved", receipt_id="rcpt_1"),
        answer(200, RECEIPT),
    ]
    assert wait(World(replies=replies)).receipt_id == "rcpt_1"


def test_a_hold_is_polled_with_the_session_that_made_it() -> None:
    world = World(replies=[answer(202, HELD)])
    core = core_in(world)
    execute(world, core)
    world.run(core.renew())
    world.replies = [polled("pending")]
    world.run(core.poll("apr_1"))
    assert world.header("Authorization", POLL) == ["DPoP lease-1"]
    world.time += 301
    world.run(core.poll("apr_1"))
    assert world.header("Authorization", POLL)[-1] == "DPoP lease-3"


def test_a_wait_ends_with_the_lease_that_made_its_hold() -> None:
    world = World(replies=[answer(202, HELD), polled("pending"), refusal(401, "lease_expired")])
    with pytest.raises(ApprovalPending) as raised:
        wait(world)
    assert "lease" in (raised.value.reason or "")
    assert world.leases == 1


@pytest.mark.parametrize(
    "problem",
    [
        refusal(401, "invalid_lease"), refusal(401, "replay_detected"), refusal(403, "approval_session_mismatch"),
        refusal(404, "approval_not_found"),
    ],
)  # fmt: skip
def test_a_held_call_of_which_the_gateway_tells_nothing_may_have_run(problem: Reply) -> None:
    with pytest.raises(GatewayError) as raised:
        wait(World(replies=[answer(202, HELD), polled("pending"), problem]))
    assert raised.value.approval_id == "apr_1"
    assert (raised.value.may_have_run, raised.value.is_retryable) == (True, False)
    assert "Send the call again" not in raised.value.hint


def test_a_call_that_may_wait_goes_out_with_a_lease_that_lives_long_enough() -> None:
    world = World()
    core = core_in(world)
    execute(world, core)
    world.time += 61
    execute(world, core)
    assert world.leases == 1
    world.run(core.execute("a", {}, waits=True))
    assert world.leases == 2
