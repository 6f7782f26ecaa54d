"""One of two fronts is killed: the other goes on, what was counted stays, and the successor takes its place."""

import threading

import httpx
import psutil
import pytest

from tests.integration.test_two_fronts import samples
from tests.support.fronts import client_of, fronts, through
from tests.support.gateway import Bearer, Gateway, wait_for
from tests.support.own_gateway import own_gateway
from tests.support.pace import Pace, Paces
from tests.support.upstream import Upstream

AGENTS = 4
KILLS = 4
"""The process id of each front in turn."""


gate = own_gateway("front_processes = 2\n", scope="function")
"""A gateway with two fronts of which one will be killed."""


class Load:
    """Agents that call until told to stop, each on connections of its own and below the rate of its session. A
    connection that was cut is made anew."""

    def __init__(self, gate: Gateway) -> None:
        self.answered: list[str] = []
        self.codes: list[str] = []
        self.cut = 0
        self._gate = gate
        self._stop = threading.Event()
        agents = [gate.agent() for _ in range(AGENTS)]  # before any front is killed
        self._threads = [threading.Thread(target=self._run, args=(agent,)) for agent in agents]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, agent: Bearer) -> None:
        pace = Paces.session()
        while not self._stop.is_set():
            with httpx.Client(base_url=self._gate.ready["base_url"], timeout=60, verify=False) as http:
                self._call(through(http, agent), pace)

    def _call(self, agent: Bearer, pace: Pace) -> None:
        try:
            while not self._stop.is_set():
                pace.wait()
                answer = agent.execute("text_digest", {"text": "x"})
                self.codes.append(f"{answer.status_code} {answer.json().get('error', '')}".strip())
                if answer.status_code == 200:
                    self.answered.append(answer.json()["receipt_id"])
        except httpx.TransportError:
            self.cut += 1


def test_while_one_front_is_replaced_the_other_serves_and_nothing_is_lost(gate: Gateway) -> None:
    with Load(gate) as load:
        for turn in range(KILLS):
            victim = fronts(gate)[turn % 2]
            done = len(load.answered)
            victim.kill()
            wait_for(lambda: len(load.answered) > done + AGENTS, "calls that succeed")  # noqa: B023
            wait_replaced(gate, victim)
    assert load.cut <= KILLS * AGENTS
    assert set(load.codes) == {"200"}, "what was not cut succeeded"
    operator = gate.operator()
    assert operator.get("/v1/audit/verify").json()["intact"] is True
    told = gate.events(event_type="ActionCall", decision="allow", limit=1000)
    receipts = [event["receipt_id"] for event in told]
    assert len(set(receipts)) == len(receipts)
    assert set(load.answered[-500:]) <= set(receipts)
    assert operator.get("/v1/admin/status").json()["in_flight_executions"] == 0
    assert len(gate.events(event_type="GatewayStarted")) == 1


def test_no_counter_goes_back_when_a_front_is_killed_whichever_front_is_asked(gate: Gateway) -> None:
    seen: dict[str, float] = {}

    def check() -> None:
        scrape = shown(gate)
        for name, value in scrape.items():
            is_count = name.partition("{")[0].endswith(("_total", "_bucket", "_count", "_sum"))
            if is_count and not name.startswith("gate_process_"):  # those are of a process, and begin with it
                assert value >= seen.get(name, 0), name
                seen[name] = value
        assert set(seen) <= set(scrape), "no series is gone"

    agent = gate.agent()
    for turn in range(KILLS):
        for _ in range(6):
            with httpx.Client(base_url=gate.ready["base_url"], timeout=60, verify=False) as http:
                assert through(http, agent).execute("text_digest", {"text": "x"}).status_code == 200
            check()
        victim = fronts(gate)[turn % 2]
        victim.kill()
        check()
        wait_replaced(gate, victim)
        check()
    wanted = 'gate_action_calls_total{action_id="text_digest",code="ok",outcome="allow"}'
    assert shown(gate)[wanted] == KILLS * 6


def test_a_front_alone_is_ready_and_says_that_it_is_alone(gate: Gateway) -> None:
    first, second = fronts(gate)
    with client_of(gate, first) as client:
        second.kill()
        wait_for(lambda: client.get("/readyz").status_code == 200, "readiness")
        operator = through(client, gate.operator())
        assert operator.get("/v1/admin/status").json()["status"] == "ok"
        wait_for(lambda: samples(operator)["gate_fronts"] == 2, "its successor")


def test_calls_in_flight_of_a_front_that_was_killed_hold_no_place(gate: Gateway, up: Upstream) -> None:
    first, second = fronts(gate)
    up.hold.clear()
    try:
        with client_of(gate, second) as client, client_of(gate, first) as other:
            agent, operator = through(client, gate.agent()), through(other, gate.operator())
            call = threading.Thread(target=lost, args=(agent,))
            call.start()
            wait_for(lambda: in_flight(operator) == 1, "the call")
            second.kill()
            wait_for(lambda: in_flight(operator) == 0, "its place")
            call.join()
    finally:
        up.hold.set()


def lost(agent: Bearer) -> None:
    """A call that gets no answer."""
    with pytest.raises(httpx.TransportError):
        agent.execute("http_fetch", {"path": "wait?place"})


def wait_replaced(gate: Gateway, victim: psutil.Process) -> None:
    """Until both fronts serve again. Before its end is noticed the one that was killed is still counted as one."""

    def both() -> bool:
        living = gate.children("front ")
        return len(living) == 2 and victim not in living and shown(gate)["gate_fronts"] == 2

    wait_for(both, "both fronts")


def in_flight(operator: Bearer) -> int:
    return int(operator.get("/v1/admin/status").json()["in_flight_executions"])


def shown(gate: Gateway) -> dict[str, float]:
    """A scrape over a connection of its own, by whichever front takes it; where that one is killed, by another."""

    def ask() -> dict[str, float] | None:
        try:
            with httpx.Client(base_url=gate.ready["base_url"], timeout=60, verify=False) as http:
                return samples(through(http, gate.operator()))
        except httpx.TransportError:
            return None

    scraped: dict[str, float] = wait_for(ask, "a front that answers")
    return scraped
