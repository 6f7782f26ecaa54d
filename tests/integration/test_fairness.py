"""A well-behaved agent beside one that takes all it can get: served every time, and not much later."""

import time
from itertools import pairwise

import pytest

from tests.support.background import in_flight
from tests.support.flood import flooding
from tests.support.gateway import Gateway, wait_for
from tests.support.own_gateway import own_gateway

PLACES = 12
CALLS = 12
"""The number of calls that one session may make at once, and in a second: a flood of twice as many is over it on any
machine."""
AGENTS = 3
TURNS = 8
SLOWER = 100
"""How many times as long a call may take beside a flood: that of the middle, and one that a few are slower than, since
a machine may stand still now and then. The flood has a core of its own to itself: on two cores that alone makes
everything several times slower."""
CONFIG = f"""
[limits]
worker_wait_seconds = 300
max_in_flight = {PLACES}
session_requests_per_second = {CALLS}
[workers]
compute = {{min_spare = 1, max = 1}}
"""


gate = own_gateway(CONFIG)
"""Few places and few workers."""


def times(gate: Gateway) -> list[float]:
    """How long each of CALLS calls of each of some new agents took, shortest first; every one of them is served."""
    durations = []
    for agent in [gate.agent() for _ in range(AGENTS)]:
        for number in range(CALLS):
            began = time.monotonic()
            answer = agent.execute("text_digest", {"text": str(number)})
            durations.append(time.monotonic() - began)
            assert answer.status_code == 200, (number, answer.text)
    return sorted(durations)


@pytest.fixture(scope="module")
def alone(gate: Gateway) -> list[float]:
    """The times of an agent that has the gateway for itself."""
    times(gate)
    return times(gate)


@pytest.mark.parametrize(("slow", "fast"), [(2 * PLACES, 4), (0, CALLS + 4)], ids=["slow bodies", "at full speed"])
def test_an_agent_beside_a_flood_is_served_every_time_and_not_much_later(
    gate: Gateway, alone: list[float], slow: int, fast: int
) -> None:
    path = "/v1/actions/text_digest/execute"
    with flooding(gate.base, gate.base, path, {"text": "flood"}, slow=slow, fast=fast) as heard:
        if slow:
            wait_for(lambda: in_flight(gate) > PLACES / 2, "places taken by calls whose body does not come")
        beside = times(gate)
        assert in_flight(gate) < PLACES, "some place is always free"
    assert heard[429] > 0, "the flood was held to its rate"
    assert heard[503] > 0 if slow else heard[200] > 0, "and to its part of the places"
    for place in (len(beside) // 2, -len(beside) // 8):
        assert beside[place] <= SLOWER * alone[place], (place, alone[place], beside[place])
    refused = [event.get("error_code") for event in gate.events(event_type="ActionCall", limit=1000)]
    told = refused.count("rate_limit_exceeded") + refused.count("overloaded")
    assert 1 <= told < (heard[429] + heard[503]) / 10, "one event tells of many refusals"
    wait_for(lambda: in_flight(gate) == 0, "every place to be given back")


def test_an_agent_with_many_long_calls_gets_no_more_workers_than_one_with_few(gate: Gateway) -> None:
    # Longer than this client needs between an answer and its next request, on however busy a machine.
    agent, spin = gate.agent(), {"seconds": 0.3}
    with flooding(gate.base, gate.base, "/v1/actions/spin/execute", spin, slow=0, fast=2 * CALLS):
        wait_for(lambda: in_flight(gate) >= PLACES / 3, "a queue for the workers")
        for _ in range(TURNS):
            assert agent.execute("spin", spin).status_code == 200
    wait_for(lambda: in_flight(gate) == 0, "the end of the flood's calls")
    ended = gate.events(event_type="ActionCall", action_id="spin", decision="allow", limit=1000)
    mine = [place for place, event in enumerate(ended) if event["session_id"] == agent.session_id]
    others = sorted(later - sooner - 1 for sooner, later in pairwise(mine))
    # One worker, two callers, one of whom asks again only when it has its answer: the other one has a call in between,
    # or two. A queue of all calls would have put there what waited at the start, again and again.
    assert len(mine) == TURNS
    assert others[len(others) // 2] <= 2, others
