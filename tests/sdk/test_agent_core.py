"""The agent's flows in a world without sockets: leases, repeats, proofs."""

import base64
import contextlib
import json
from typing import Any

import pytest
from gateway_client import (
    AgentClient,
    AuthenticationFailed,
    Executed,
    GatewayError,
    LeaseTerms,
    RateLimited,
    Unavailable,
    Unreachable,
)
from gateway_client.wire.exchange import SentRequest
from hypothesis import given
from hypothesis import strategies as st

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


def claims_of(proof: str) -> dict[str, Any]:
    payload = proof.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


def test_the_first_call_takes_a_lease_and_the_next_ones_use_it() -> None:
    world = World()
    core = core_in(world)
    execute(world, core)
    execute(world, core)
    assert world.paths() == ["/v1/leases", EXECUTE, EXECUTE]
    assert world.header("Authorization") == ["DPoP lease-1", "DPoP lease-1"]


@pytest.mark.parametrize(("seconds", "leases"), [(0, 1), (239.9, 1), (240.1, 2), (301, 2)])
def test_a_lease_is_renewed_when_fewer_than_sixty_seconds_are_left(seconds: float, leases: int) -> None:
    world = World()
    core = core_in(world)
    execute(world, core)
    world.time += seconds
    execute(world, core)
    assert world.leases == leases


def test_a_lease_that_is_short_from_the_start_is_not_replaced_at_every_call() -> None:
    world = World(lease_seconds=30)
    core = core_in(world)
    for _ in range(3):
        execute(world, core)
    assert world.leases == 1
    world.time += 7
    execute(world, core)
    assert world.leases == 2


@pytest.mark.parametrize(
    "problem",
    [
        refusal(503, "draining", 5),
        refusal(429, "rate_limit_exceeded", 1),
        Unreachable("connection_lost", was_sent=True),
    ],
)
def test_the_last_minute_of_a_lease_is_used_when_no_other_can_be_had(problem: Reply) -> None:
    world = World()
    core = core_in(world)
    execute(world, core)
    world.time += 250
    world.lease_replies = [problem]
    assert isinstance(execute(world, core), Executed)
    assert world.paused == []
    world.time += 4
    execute(world, core)
    assert world.paths().count("/v1/leases") == 2
    world.lease_replies = [problem]
    world.time += 2
    execute(world, core)
    assert world.paths().count("/v1/leases") == 3
    world.time += 60
    world.lease_replies = [problem] * 3
    with pytest.raises((Unavailable, RateLimited, Unreachable)):
        execute(world, core)


def test_a_lease_endpoint_that_hangs_leaves_the_call_half_of_its_time() -> None:
    world = World()
    core = core_in(world)
    execute(world, core)
    world.time += 250

    def hang(request: SentRequest) -> None:
        if request.target == "/v1/leases":
            world.time += world.seconds[-1]

    world.on_send = hang
    world.lease_replies = [Unreachable("timed_out", was_sent=True)]
    assert isinstance(world.run(core.execute("a", {}, waits=False, timeout=20)), Executed)
    assert world.seconds[-2:] == [10.0, 10.0]


def test_two_calls_that_need_a_lease_at_once_take_one() -> None:
    world = World()
    core = core_in(world)
    first = core._lease(core.deadline(), 60)
    second = core._lease(core.deadline(), 60)
    alone = [next(first), next(second)]
    one = world.run(alone[0].flow)  # type: ignore[union-attr]
    two = world.run(alone[1].flow)  # type: ignore[union-attr]
    assert one is two
    assert world.leases == 1


@pytest.mark.parametrize("code", ["lease_expired", "invalid_lease"])
def test_a_refused_lease_is_replaced_once(code: str) -> None:
    world = World(replies=[refusal(401, code), answer(200, EXECUTED)])
    assert isinstance(execute(world, core_in(world)), Executed)
    assert world.header("Authorization") == ["DPoP lease-1", "DPoP lease-2"]
    world = World(replies=[refusal(401, code)])
    with pytest.raises(AuthenticationFailed) as raised:
        execute(world, core_in(world))
    assert raised.value.code == code
    assert world.leases == 2


@pytest.mark.parametrize("code", ["invalid_dpop", "replay_detected", "missing_auth_header"])
def test_another_failure_of_authentication_is_not_tried_again(code: str) -> None:
    world = World(replies=[refusal(401, code)])
    with pytest.raises(AuthenticationFailed):
        execute(world, core_in(world))
    assert world.paths() == ["/v1/leases", EXECUTE]


def test_a_session_with_a_budget_is_never_replaced_behind_the_programs_back() -> None:
    world = World()
    core = core_in(world, LeaseTerms(max_calls=3))
    execute(world, core)
    assert json.loads(world.sent[0].body or b"")["budgets"] == {"max_calls": 3}
    world.time += 299
    execute(world, core)
    world.time += 2
    with pytest.raises(AuthenticationFailed) as raised:
        execute(world, core)
    assert raised.value.code == "lease_expired"
    assert world.leases == 1
    assert world.run(core.renew()).session_id == "ses_2"
    execute(world, core)
    world.replies = [refusal(401, "invalid_lease")]
    with pytest.raises(AuthenticationFailed):
        execute(world, core)
    assert world.leases == 2


def test_a_budget_is_renewed_when_the_program_says_so() -> None:
    world = World()
    core = core_in(world, LeaseTerms(max_calls=3, renews_budget=True))
    execute(world, core)
    world.time += 250
    execute(world, core)
    assert world.leases == 2


def test_each_lease_is_asked_for_with_the_token_of_that_moment_and_no_call_is() -> None:
    world, tokens = World(), iter(["first\n", "second"])
    core = core_in(world, LeaseTerms(token=lambda: next(tokens)))
    execute(world, core)
    world.time += 299
    execute(world, core)
    shown = [dict(one.headers).get("Authorization", "")[:13] for one in world.sent]
    assert [one for one in shown if not one.startswith("DPoP ")] == ["Bearer first", "Bearer second"]
    assert world.sent[0].secrets == ("first",)


def test_a_token_that_no_header_can_carry_is_not_sent() -> None:
    world = World()
    with pytest.raises(ValueError, match="can't be sent"):
        execute(world, core_in(world, LeaseTerms(token=lambda: "a\r\nb")))
    assert world.sent == []


@pytest.mark.parametrize("host", ["gate.example", "10.0.0.1", "localhost.example", "[2001:db8::1]"])
def test_a_token_is_not_sent_in_plain_text_to_another_host(host: str) -> None:
    with pytest.raises(ValueError, match="over https alone"):
        AgentClient(f"http://{host}:8443", terms=LeaseTerms(token=lambda: "a.b.c"))
    AgentClient(f"http://{host}:8443").close()


@pytest.mark.parametrize(
    "address", ["https://gate.example", "http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"]
)
def test_a_token_may_be_sent_over_tls_and_within_this_host(address: str) -> None:
    AgentClient(address, terms=LeaseTerms(token=lambda: "a.b.c")).close()


BEFORE_DISPATCH = [
    (429, "rate_limit_exceeded"), (503, "overloaded"), (503, "draining"), (503, "policy_engine_timeout"),
    (503, "policy_engine_unavailable"), (503, "replay_cache_unavailable"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "code"), BEFORE_DISPATCH)
def test_an_execute_refused_before_dispatch_is_sent_again_when_the_answer_says_when(status: int, code: str) -> None:
    world = World(replies=[refusal(status, code, 2), answer(200, EXECUTED)])
    assert isinstance(execute(world, core_in(world)), Executed)
    assert world.paths() == ["/v1/leases", EXECUTE, EXECUTE]
    assert world.paused == [2.0]
    world = World(replies=[refusal(status, code)])
    with pytest.raises((RateLimited, Unavailable)):
        execute(world, core_in(world))
    assert world.paths() == ["/v1/leases", EXECUTE]


@pytest.mark.parametrize(
    "problem",
    [
        refusal(500, "evidence_persistence_failed", 1),
        refusal(500, "internal_error", 1),
        refusal(502, "action_execution_failed", 1),
        refusal(503, "budget_store_unavailable", 1),
        refusal(503, "approval_store_unavailable", 1),
        refusal(503, "something_new", 1),
        refusal(429, "too_many_pending_approvals", 1),
        answer(503, {}, retry_after="1"),
        Unreachable("unreachable", was_sent=False),
    ],
    ids=str,
)
def test_an_execute_that_may_have_done_something_is_not_sent_again(problem: Reply) -> None:
    world = World(replies=[problem])
    with pytest.raises(GatewayError):
        execute(world, core_in(world))
    assert world.paths() == ["/v1/leases", EXECUTE]


def test_repeats_are_few_and_stay_within_the_time_given() -> None:
    world = World(replies=[refusal(503, "overloaded", 1)])
    with pytest.raises(Unavailable):
        execute(world, core_in(world))
    assert world.paused == [1.0, 1.0]
    world = World(replies=[refusal(503, "overloaded", 30)])
    core = core_in(world)
    with pytest.raises(Unavailable) as raised:
        world.run(core.execute("a", {}, waits=False, timeout=10))
    assert raised.value.retry_after == 30
    assert world.paused == []


def test_a_read_is_asked_again_once_when_the_connection_is_lost() -> None:
    lost = Unreachable("connection_lost", was_sent=True)
    world = World(replies=[lost, answer(200, RECEIPT)])
    assert world.run(core_in(world).receipt("rcpt_1")).receipt_id == "rcpt_1"
    world = World(replies=[lost])
    with pytest.raises(Unreachable):
        world.run(core_in(world).receipt("rcpt_1"))
    assert len(world.sent) == 3


@given(
    st.lists(
        st.sampled_from(
            [
                refusal(503, "overloaded", 1),
                refusal(429, "rate_limit_exceeded", 1),
                refusal(401, "lease_expired"),
                refusal(401, "invalid_lease"),
                refusal(403, "policy_denied"),
                refusal(500, "internal_error"),
                answer(202, HELD),
                answer(200, EXECUTED),
                polled("pending"),
                answer(200, RECEIPT),
                Unreachable("connection_lost", was_sent=True),
                Unreachable("timed_out", was_sent=True),
            ]
        ),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.sampled_from(["execute", "wait", "poll", "receipt"]), min_size=1, max_size=4),
    st.integers(0, 200),
)
def test_no_proof_is_ever_sent_twice_and_each_fits_its_request(
    replies: list[Reply], calls: list[str], seconds: int
) -> None:
    world = World(replies=list(replies))
    core = core_in(world)
    for call in calls:
        flows = {
            "execute": lambda: core.execute("a", {}, waits=False),
            "wait": lambda: core.execute("a", {}, waits=True, timeout=20),
            "poll": lambda: core.poll("apr_1"),
            "receipt": lambda: core.receipt("rcpt_1"),
        }
        with contextlib.suppress(GatewayError):
            world.run(flows[call]())  # type: ignore[no-untyped-call]
        world.time += seconds
    proofs = world.header("DPoP")
    assert len(proofs) == len(set(proofs))
    claims = [claims_of(proof) for proof in proofs]
    assert len({claim["jti"] for claim in claims}) == len(claims)
    proven = [request for request in world.sent if request.target != "/v1/leases"]
    assert len(proven) == len(claims)
    for request, claim in zip(proven, claims, strict=True):
        assert claim["htu"] == "https://gateway.test" + request.target.partition("?")[0]
        assert claim["htm"] == request.method


def test_a_call_with_what_is_no_json_is_refused_before_anything_is_sent() -> None:
    world = World()
    core = core_in(world)
    for request in ({"n": float("nan")}, {"n": object()}, {"n": "\ud800"}):
        with pytest.raises(ValueError, match="JSON"):
            world.run(core.execute("a", request, waits=False))
    with pytest.raises(ValueError, match="identifier"):
        world.run(core.execute("..", {}, waits=False))
    assert world.sent == []
