"""Executes under an idempotency key in a world without sockets: which ones are sent again, and what is raised."""

from typing import Any

import pytest
from gateway_client import (
    AlreadyExecuted,
    ApprovalEnded,
    Denied,
    Executed,
    GatewayError,
    Held,
    Invalid,
    OutcomeUnknown,
    ProtocolViolation,
    RateLimited,
    Unreachable,
)
from gateway_client.calling.idempotency import key_header

from tests.support.played_gateway import (
    EXECUTED,
    HELD,
    RECEIPT,
    Reply,
    World,
    answer,
    core_in,
    execute,
    polled,
    refusal,
)

EXECUTE = "/v1/actions/a/execute"
PROBE = "/v1/calls?limit=1"
GONE = Unreachable("unreachable", was_sent=False)
CALLS = answer(200, {"calls": [], "next": None})
DONE = answer(200, EXECUTED)
RUNNING = refusal(409, "call_in_progress", 1)


def lost() -> Reply:
    return Unreachable("connection_lost", was_sent=True)


def replayed(status: int, body: dict[str, Any], **headers: str) -> Reply:
    return answer(status, body, idempotent_replayed="true", **headers)


BEFORE = replayed(409, {"error": "already_executed"}, x_receipt_id="rcpt_1", x_trace_id="trc_9")


def raised_by(replies: list[Reply], *, waits: bool = False, timeout: float | None = None) -> GatewayError:
    world = World(replies=list(replies))
    with pytest.raises(GatewayError) as raised:
        world.run(core_in(world).execute("a", {}, waits=waits, timeout=timeout))
    return raised.value


def test_each_call_has_a_key_of_its_own_and_all_its_attempts_have_the_same() -> None:
    world = World(replies=[lost(), CALLS, lost(), CALLS, refusal(503, "overloaded", 1), DONE])
    core = core_in(world)
    execute(world, core)
    execute(world, core)
    assert world.paths() == ["/v1/leases", EXECUTE, PROBE, EXECUTE, PROBE, EXECUTE, EXECUTE, EXECUTE]
    keys = world.header("Idempotency-Key", EXECUTE)
    assert len(keys) == 5
    assert len(set(keys[:4])) == 1
    assert len(set(keys)) == 2
    assert world.header("Idempotency-Key") == keys, "no other request has one"


@pytest.mark.parametrize("told", [refusal(502, "gateway_broke_off"), refusal(504, "gateway_timeout")])
def test_a_call_whose_answer_an_edge_has_lost_is_sent_again_under_its_key(told: Reply) -> None:
    world = World(replies=[told, told, CALLS, told, CALLS, DONE])
    assert isinstance(execute(world, core_in(world)), Executed)
    assert world.paths() == ["/v1/leases", EXECUTE, PROBE, PROBE, EXECUTE, PROBE, EXECUTE]
    assert len(set(world.header("Idempotency-Key", EXECUTE))) == 1


def test_a_program_chooses_a_key_and_reads_it_in_every_error() -> None:
    world = World(replies=[refusal(403, "policy_denied")])
    with pytest.raises(Denied) as raised:
        world.run(core_in(world).execute("a", {}, waits=False, idempotency_key='in "7"\\'))
    assert world.header("Idempotency-Key") == ['"in \\"7\\"\\\\"']
    assert raised.value.idempotency_key == 'in "7"\\'


@pytest.mark.parametrize("key", ["", "é", "a\n", "a\x7f", "k" * 256])
def test_a_key_that_no_header_can_hold_is_refused_before_anything_is_sent(key: str) -> None:
    world = World()
    with pytest.raises(ValueError, match="1 to 255"):
        world.run(core_in(world).execute("a", {}, waits=False, idempotency_key=key))
    assert world.sent == []


def test_the_longest_key_is_sent() -> None:
    assert key_header("k" * 255) == (("Idempotency-Key", '"' + "k" * 255 + '"'),)


@pytest.mark.parametrize("problem", [lost(), ProtocolViolation("cut off"), answer(502, "no gateway")], ids=str)
def test_a_lost_call_is_asked_for_until_the_gateway_is_back(problem: Reply) -> None:
    away: list[Reply] = [GONE, GONE, refusal(503, "draining"), CALLS, GONE, refusal(503, "overloaded", 3)]
    world = World(replies=[problem, *away, DONE])
    assert isinstance(execute(world, core_in(world)), Executed)
    assert world.paused == [0.25, 0.5, 1.0, 2.0, 4.0, 3.0]


def test_a_call_that_timed_out_is_asked_for_while_it_waits_for_a_person() -> None:
    late = Unreachable("timed_out", was_sent=True)
    world = World(
        replies=[late, CALLS, replayed(202, HELD), polled("approved", receipt_id="rcpt_1"), answer(200, RECEIPT)]
    )
    held: list[Held] = []
    done = world.run(core_in(world).execute("a", {}, waits=True, on_held=held.append))
    assert isinstance(done, Executed)
    assert (done.receipt_id, [one.approval_id for one in held]) == ("rcpt_1", ["apr_1"])


@pytest.mark.parametrize("first", [GONE, Unreachable("timed_out", was_sent=False), Unreachable("client_closed")])
def test_a_call_of_which_nothing_was_sent_and_one_of_a_closed_client_end_at_once(first: Unreachable) -> None:
    world = World(replies=[first])
    with pytest.raises(Unreachable) as raised:
        execute(world, core_in(world))
    assert raised.value is first
    assert world.paths() == ["/v1/leases", EXECUTE]


def test_a_lease_that_is_lost_leaves_a_call_of_which_nothing_was_sent() -> None:
    world = World(lease_replies=[lost(), lost()])
    with pytest.raises(Unreachable) as raised:
        execute(world, core_in(world))
    assert (raised.value.may_have_run, raised.value.is_retryable) == (False, True)
    assert world.paths() == ["/v1/leases"] * 2


@pytest.mark.parametrize("problem", [lost(), ProtocolViolation("cut off"), answer(502, "no gateway")], ids=str)
def test_a_call_that_a_gateway_without_keys_may_have_taken_is_not_sent_to_its_successor(problem: Reply) -> None:
    world = World(replies=[problem, CALLS, DONE], knows_keys=False)
    core = core_in(world)
    with pytest.raises(GatewayError) as raised:
        execute(world, core)
    assert raised.value.may_have_run
    assert world.paths() == ["/v1/leases", EXECUTE]
    world.knows_keys, world.replies = True, [lost(), CALLS, DONE]
    world.run(core.renew())
    assert isinstance(execute(world, core), Executed)
    assert world.paths()[2:] == ["/v1/leases", EXECUTE, PROBE, EXECUTE]


def test_each_repeat_asks_anew_whether_the_gateway_knows_keys() -> None:
    older = refusal(404, "not_found")
    world = World(replies=[lost(), CALLS, lost(), older, DONE])
    core = core_in(world)
    with pytest.raises(Unreachable) as raised:
        execute(world, core)
    assert (raised.value.code, raised.value.may_have_run) == ("connection_lost", True)
    assert world.paths() == ["/v1/leases", EXECUTE, PROBE, EXECUTE, PROBE]
    world.replies = [lost(), CALLS, DONE]
    assert isinstance(execute(world, core), Executed)


def test_a_call_that_runs_already_is_waited_for() -> None:
    world = World(replies=[RUNNING, RUNNING, DONE])
    assert isinstance(execute(world, core_in(world)), Executed)
    assert world.paused == [1.0, 1.0]
    error = raised_by([RUNNING], timeout=5)
    assert isinstance(error, OutcomeUnknown)
    assert (error.code, error.may_have_run, error.is_retryable) == ("call_in_progress", True, False)


def test_a_call_that_has_run_already_is_answered_from_its_receipt() -> None:
    world = World(replies=[BEFORE, answer(200, RECEIPT)])
    done = execute(world, core_in(world))
    assert isinstance(done, Executed)
    assert (done.receipt_id, done.output, done.trace_id) == ("rcpt_1", {"n": 1}, "trc_9")
    assert done.is_fully_successful


def test_a_receipt_that_cannot_be_read_leaves_a_call_that_was_executed() -> None:
    error = raised_by([BEFORE, refusal(404, "receipt_not_found")])
    assert isinstance(error, AlreadyExecuted)
    assert (error.receipt_id, error.may_have_run, error.is_retryable) == ("rcpt_1", True, False)
    error = raised_by([replayed(409, {"error": "already_executed"}, x_intent_id="intent_1")])
    assert isinstance(error, AlreadyExecuted)
    assert error.intent_id == "intent_1"


def test_an_unknown_outcome_has_a_name_and_its_intent() -> None:
    error = raised_by([lost(), CALLS, replayed(409, {"error": "outcome_unknown"}, x_intent_id="intent_1")])
    assert isinstance(error, OutcomeUnknown)
    assert (error.intent_id, error.may_have_run, error.is_retryable) == ("intent_1", True, False)


def test_a_hold_that_expired_before_is_named_as_after_a_wait() -> None:
    error = raised_by([replayed(409, {"error": "approval_expired"})])
    assert isinstance(error, ApprovalEnded)
    assert (error.may_have_run, error.is_retryable) == (False, True)


@pytest.mark.parametrize("effect", ["no", "unknown"])
def test_an_action_that_failed_is_not_called_again(effect: str) -> None:
    failed = answer(502, {"error": "action_execution_failed"}, x_may_have_run=effect)
    world = World(replies=[failed, DONE])
    with pytest.raises(GatewayError):
        execute(world, core_in(world))
    error = raised_by([lost(), CALLS, failed, DONE])
    assert (error.code, error.effect) == ("action_execution_failed", effect)


@pytest.mark.parametrize(
    "refused",
    [refusal(403, "policy_denied"), refusal(400, "invalid_request"), refusal(404, "not_found"), answer(403, "page")],
)
def test_a_refused_repeat_does_not_hide_that_the_call_may_have_run(refused: Reply) -> None:
    error = raised_by([lost(), CALLS, refused])
    assert (error.code, error.may_have_run) == ("connection_lost", True)
    assert "it may have run" in (error.reason or "")
    assert isinstance(error.__cause__, GatewayError)


def test_a_hold_that_was_denied_before_is_the_outcome_of_a_lost_call() -> None:
    denied = replayed(403, {"error": "policy_denied", "deny_reason": "not today"})
    error = raised_by([lost(), CALLS, denied])
    assert (error.code, error.reason) == ("policy_denied", "not today")


def test_a_gateway_that_stays_away_leaves_the_loss_when_the_time_is_over() -> None:
    world = World(replies=[lost(), GONE])
    with pytest.raises(Unreachable) as raised:
        world.run(core_in(world).execute("a", {}, waits=False, timeout=20))
    assert raised.value.code == "connection_lost"
    assert sum(world.paused) <= 20


def test_a_key_of_another_request_is_refused() -> None:
    error = raised_by([refusal(422, "idempotency_key_reused")])
    assert isinstance(error, Invalid)
    assert not error.may_have_run


def test_a_principal_with_too_many_keys_calls_without_the_librarys_own() -> None:
    many = refusal(429, "too_many_idempotency_keys", 60)
    world = World(replies=[many, lost()])
    with pytest.raises(Unreachable) as raised:
        execute(world, core_in(world))
    assert raised.value.idempotency_key is None
    assert world.paths() == ["/v1/leases", EXECUTE, EXECUTE], "without a key it is sent once"
    assert len(world.header("Idempotency-Key")) == 1
    world = World(replies=[many])
    with pytest.raises(RateLimited):
        world.run(core_in(world).execute("a", {}, waits=False, idempotency_key="k"))
    assert world.paths() == ["/v1/leases", EXECUTE]
