"""A well-behaved agent beside one that takes all it can get: served every time, and not much later."""

import time
from collections.abc import Iterator

import pytest

from tests.support.background import in_flight
from tests.support.flood import flooding
from tests.support.gateway import Gateway, gateway, wait_for

PLACES = 48
CALLS = 40
"""As many as one session may make at once."""
SLOWER = 40
"""How many times as long a call may take beside a flood. The flood has a core of its own to itself: on two cores that
alone makes everything several times slower."""
CONFIG = f"""
[limits]
max_in_flight = {PLACES}
session_requests_per_second = {CALLS}
[workers]
compute = {{min_spare = 2, max = 2}}
"""


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Few places and few workers."""
    with gateway(tmp_path_factory.mktemp("gate"), CONFIG) as running:
        yield running


def times(gate: Gateway) -> list[float]:
    """How long each of CALLS calls of a new agent took, shortest first; every one of them is served."""
    agent, found = gate.agent(), []
    for number in range(CALLS):
        began = time.monotonic()
        answer = agent.execute("text_digest", {"text": str(number)})
        found.append(time.monotonic() - began)
        assert answer.status_code == 200, (number, answer.text)
    return sorted(found)


@pytest.fixture(scope="module")
def alone(gate: Gateway) -> list[float]:
    """The times of an agent that has the gateway for itself."""
    times(gate)
    return times(gate)


@pytest.mark.parametrize(("slow", "fast"), [(2 * PLACES, 4), (0, 16)], ids=["slow bodies", "at full speed"])
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
    for place in (CALLS // 2, -1):
        assert beside[place] <= SLOWER * alone[place], (place, alone[place], beside[place])
    refused = [event.get("error_code") for event in gate.events(event_type="ActionCall", limit=1000)]
    told = refused.count("rate_limit_exceeded") + refused.count("overloaded")
    assert 1 <= told < (heard[429] + heard[503]) / 10, "one event tells of many refusals"
    wait_for(lambda: in_flight(gate) == 0, "every place to be given back")


def test_an_agent_with_many_long_calls_gets_no_more_workers_than_one_with_few(gate: Gateway) -> None:
    agent, spin = gate.agent(), {"seconds": 0.1}
    with flooding(gate.base, gate.base, "/v1/actions/spin/execute", spin, slow=0, fast=24) as heard:
        wait_for(lambda: in_flight(gate) >= 20, "a queue for the workers")
        served = 0
        began = time.monotonic()
        while time.monotonic() - began < 3:
            assert agent.execute("spin", spin).status_code == 200
            served += 1
    # Two workers, two callers, one of whom asks again only when it has its answer: a fair turn is about a third.
    assert served >= heard[200] / 6, (served, heard)
