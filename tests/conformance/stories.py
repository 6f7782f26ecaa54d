"""Events that need a gateway of their own: a restart, a drain, an outage, unknown callers.

All of it happens once to one gateway of each kind, from its first start to its last end. The rows look at what was
seen: a lease or a hold that would run out while other tests take their time is used here and at once.
"""

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.outages import Outage, live_through_outage
from tests.conformance.scene import PATIENCE
from tests.conformance.underway import intents, still_workers
from tests.support.gateway import ANSWER_SECONDS, START_SECONDS, STOP_SECONDS, Prover, wait_for
from tests.support.ports import free_port
from tests.support.production import mapping, over

Start = Callable[..., AbstractContextManager[Deployment]]
EXECUTE = "/v1/actions/text_digest/execute"
DRAIN_SECONDS = {"dev": 20.0, "run": 30.0}
"""The time for a call that ends by itself with a slow worker, and the cost of one that is cut. Production has at
least as much."""


@dataclass
class Before:
    """The actions before the restart, with their agents. The leases are good for an hour."""

    old_epoch: Caller
    """A lease from before revoke-all."""
    limited: Caller
    """With a budget of three calls: one was spent before, one is held."""
    lost: Caller
    """With a call whose front was killed."""
    cut: Caller
    """With a call that the stop cut."""
    other: Caller
    """A shorter drain deadline, for a call that was under way at the stop."""
    ended_in_time: int = 0
    """The status of the shorter one."""
    wrong_clock: httpx.Response | None = None
    """The answer of execute while the clock was behind the newest evidence."""
    result: dict[str, Any] = field(default_factory=dict)
    """The result of a call that was answered before."""
    proof_id: str = ""
    """The jti of its proof."""
    approval_id: str = ""
    """A hold of `limited`."""
    epoch: int = 0
    events: int = 0
    """How many events there were, at least."""


@dataclass
class Restart:
    """A gateway after a restart."""

    before: Before
    replayed: httpx.Response
    """The answer to a proof with the jti of one from before."""
    calls: list[int]
    """The status of each of two calls of `limited`."""
    approved: httpx.Response
    """The answer to the approve of the hold from before."""
    polled: httpx.Response
    epoch: int
    old_epoch: httpx.Response
    """The answer to a call by the lease from before revoke-all."""
    found: list[dict[str, Any]]
    """Events by the trace of the result."""
    chain: dict[str, Any]
    intents: list[dict[str, Any]]
    unresolved: int
    """As status counts them."""
    lost_events: list[dict[str, Any]]
    receipt: dict[str, Any]
    """The type of the result."""
    cut_receipt: dict[str, Any]


@dataclass
class Strangers:
    """The answers to requests for a lease at a gateway that knows another user than this one."""

    socket: httpx.Response
    """The socket that tells the gateway the user who connects."""
    tcp: httpx.Response
    """Where it is not."""


@dataclass
class Drain:
    """A gateway that drained while one call was under way."""

    operator_name: str
    first: httpx.Response
    """The answer to the drain."""
    again: httpx.Response
    """The answer to a second one."""
    during: dict[str, Any]
    """Status while the call was under way."""
    refused: httpx.Response
    """The answer to a new call."""
    refused_lease: httpx.Response
    approved: httpx.Response
    """The answer to an approve."""
    ended: int
    """The status of the call that was under way."""
    idle: dict[str, Any]
    """Status when it had ended."""
    events: list[dict[str, Any]]
    """The deadline of drains."""
    reloaded: httpx.Response
    """The answer to a reload, afterwards."""
    refused_after_reload: httpx.Response
    refused_by_next_front: httpx.Response
    last: dict[str, Any]
    """Status of the next front."""


@dataclass
class Story:
    """Everything that happened to one gateway."""

    restart: Restart
    strangers: Strangers
    outage: Outage
    drain: Drain


def live(start: Start, mode: str, folder: Path) -> Story:
    """Start a gateway, restart it as one that knows another user, take its policy engine away, drain it."""
    top = "lease_ttl_seconds = 3600\n"
    with start(folder, top=top, tables=f"[limits]\ndrain_seconds = {DRAIN_SECONDS[mode]}\n") as gate:
        base, before = gate.base, live_before(gate)
    top += f'public_base_url = "{base}"\n'
    address = f"127.0.0.1:{free_port()}"
    if mode == "run":
        top += f'listen_http_addr = "{address}"\nunsafe_expose_http = true\n'
    known = f'[identity]\nprovider = "peercred"\n{mapping(os.geteuid() + 1, "somebody-else")}'
    with start(folder, top=top, identity=known) as gate:
        for caller in (before.old_epoch, before.limited, before.lost, before.cut, before.other):
            caller.http = gate.client
        restart, strangers = look_back(gate, before), ask_as_strangers(gate, address)
        outage = live_through_outage(gate, before.other)
        return Story(restart, strangers, outage, live_through_drain(gate, before.other))


# ------------------------------------------------------------------------------------------------ a restart


def live_before(gate: Deployment) -> Before:
    """Revoke all, lose a front, have a wrong clock, spend, hold, and be stopped with two calls under way."""
    old = gate.agent()
    assert gate.operator().post("/v1/admin/revoke-all").status_code == 200
    before = Before(old, gate.agent(max_calls=3), gate.agent(), gate.agent(), gate.agent())
    with still_workers(gate) as workers:
        call, _ = workers.begin(lambda: before.lost.execute("spin", {"seconds": PATIENCE}), runs=True)
        with _evidence_of_tomorrow(gate):
            _replace_notary_and_front(gate)
            before.wrong_clock = before.other.execute("text_digest", {"text": "too early"})
        assert call.status() == 0
    _replace_notary_and_front(gate)
    with still_workers(gate, files=True) as workers:
        before.epoch = gate.operator().get("/v1/admin/epoch").json()["current_epoch"]
        before.events = len(gate.events(limit=1000))
        call, _ = workers.begin(lambda: before.cut.execute("spin", {"seconds": PATIENCE}), runs=True)
        short, _ = workers.begin(lambda: before.other.execute("file_write", {"path": "short", "content": "x"}))
        before.approval_id = gate.held(before.limited)
        _spend(gate, before)
        gate.gateway.process.send_signal(signal.SIGTERM)
        wait_for(lambda: '"asked to stop"' in gate.gateway.log.read_text(), "a supervisor that got the signal")
        workers.go_on("fs")
        assert gate.gateway.process.wait(STOP_SECONDS) == 137
        before.ended_in_time = short.status()
        assert call.status() == 0
    return before


def _spend(gate: Deployment, before: Before) -> None:
    before.proof_id = str(uuid.uuid4())
    proof = before.limited.headers("POST", EXECUTE, jti=before.proof_id)
    answer = gate.client.post(EXECUTE, headers=proof, json={"text": "before"})
    assert answer.status_code == 200, answer.text
    before.result = answer.json()


@contextmanager
def _evidence_of_tomorrow(gate: Deployment) -> Iterator[None]:
    """The newest event is an hour ahead of the clock: a notary that starts now knows that one of them is wrong."""
    shift = "update events set time = ? where seq = ?"
    ((seq, real),) = gate.select("select seq, time from events order by seq desc limit 1")
    assert gate.change(shift, int((time.time() + 3600) * 1000), seq) == 1
    yield
    assert gate.change(shift, real, seq) == 1


def _replace_notary_and_front(gate: Deployment) -> None:
    """Kill both and wait for the next: a front hears from its notary what the newest evidence is."""
    notary = gate.gateway.child("notary")
    notary.send_signal(signal.SIGKILL)
    wait_for(lambda: [one for one in gate.gateway.children("notary") if one.pid != notary.pid], "the next notary")
    _replace_front(gate)


def _replace_front(gate: Deployment) -> None:
    """Kill the front and wait for the next."""
    front = gate.gateway.child("front")
    front.send_signal(signal.SIGKILL)
    wait_for(lambda: _is_served(gate, front.pid), "the next front", START_SECONDS)


def _is_served(gate: Deployment, killed: int) -> bool:
    try:
        fronts = [one.pid for one in gate.gateway.children("front")]
        ready = gate.client.get("/readyz").json()
        # Not ready all the same while it drains, or while the story has set its clock wrong.
        return fronts not in ([], [killed]) and all(ready[name] for name in ("redis", "opa", "ledger"))
    except httpx.TransportError:
        return False


def look_back(gate: Deployment, before: Before) -> Restart:
    """The processes that are still there."""
    limited, operator, poll = before.limited, gate.operator(), f"/v1/approvals/{before.approval_id}/poll"
    again = limited.headers("POST", EXECUTE, jti=before.proof_id)
    cut_events = gate.events(session_id=before.cut.session_id, event_type="ActionCall")
    return Restart(
        before,
        replayed=gate.client.post(EXECUTE, headers=again, json={"text": "before"}),
        calls=[limited.execute("text_digest", {"text": str(number)}).status_code for number in range(2)],
        approved=operator.post(f"/v1/approvals/{before.approval_id}/approve"),
        polled=limited.get(poll),
        epoch=operator.get("/v1/admin/epoch").json()["current_epoch"],
        old_epoch=before.old_epoch.execute("text_digest", {"text": "x"}),
        found=gate.events(trace_id=before.result["trace_id"]),
        chain=operator.get("/v1/audit/verify").json(),
        intents=intents(gate),
        unresolved=gate.status()["unresolved_intents"],
        lost_events=gate.events(session_id=before.lost.session_id, event_type="ActionCall"),
        receipt=gate.receipt(before.result["receipt_id"]),
        cut_receipt=gate.receipt(cut_events[0]["receipt_id"]),
    )


# ------------------------------------------------------------------------------------------------ strangers


def ask_as_strangers(gate: Deployment, address: str) -> Strangers:
    """Ask where the gateway knows who connects, and where it can't know."""
    wanted = {"scopes": ["tools:call"], "dpop_jwk": Prover().jwk}
    told, untold = gate.gateway.ready["client_socket"], gate.client.base_url if gate.is_dev else f"http://{address}"
    with over(told) as client, httpx.Client(base_url=untold, timeout=ANSWER_SECONDS) as tcp:
        return Strangers(client.post("/v1/leases", json=wanted), tcp.post("/v1/leases", json=wanted))


# ------------------------------------------------------------------------------------------------ a drain


def live_through_drain(gate: Deployment, agent: Caller) -> Drain:
    """Drain with a call under way and a hold that waits; reload, and lose the front, afterwards."""
    operator, wanted = gate.operator(), {"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk}

    def refused() -> httpx.Response:
        return agent.execute("text_digest", {"text": "x"})

    with still_workers(gate, agent) as workers:
        approval_id = gate.held(agent)
        call, _ = workers.begin(lambda: agent.execute("spin", {}))
        first, during = operator.post("/v1/admin/drain"), gate.status()
        call_refused, lease_refused = refused(), gate.client.post("/v1/leases", json=wanted)
        approved = operator.post(f"/v1/approvals/{approval_id}/approve")
        again = operator.post("/v1/admin/drain")
    ended = call.status()
    idle = wait_for(lambda: (status := gate.status())["in_flight_executions"] == 0 and status, "the end of all calls")
    events, reloaded, after_reload = gate.events(event_type="AdminDrain"), gate.reload(), refused()
    _replace_front(gate)
    return Drain(
        gate.operator_name, first, again, during, call_refused, lease_refused, approved, ended, idle, events, reloaded,
        after_reload, refused(), gate.status(),
    )  # fmt: skip
