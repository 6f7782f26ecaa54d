"""What can't be seen on a gateway that others use: a restart, a drain, and callers whom nobody knows.

Each is lived through once a kind of gateway; the rows look at what was seen.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.outages import frozen_policy, without_policy
from tests.support.background import Background
from tests.support.gateway import wait_for
from tests.support.production import mapping, over

Start = Callable[..., AbstractContextManager[Deployment]]
LONG = {"seconds": 5}
"""For spin: longer than anybody waits."""


def dispatched(gate: Deployment, agent: Caller, action: str, body: Any, count: int = 1) -> Background:
    """A call that goes on in the background, once its provider has been told."""
    call = Background(lambda: agent.execute(action, body))
    wait_for(lambda: gate.status()["unresolved_intents"] == count, "the dispatch")
    return call


# ------------------------------------------------------------------------------------------------ a restart


@dataclass
class Restart:
    """A gateway after a restart, and what was done before it."""

    gate: Deployment
    agent: Caller
    """With a budget of three calls: one was spent before, one is held."""
    result: dict[str, Any]
    """The result of a call that was answered before."""
    replayed: httpx.Response
    """The answer to the proof of that call, sent again afterwards, while it was still young enough."""
    approval_id: str
    """A hold from before, of `agent`."""
    lost_session: str
    """The session of a call whose front was killed."""
    cut_session: str
    """The session of a call that the stop cut, and of a shorter one."""
    ended_in_time: int
    """The status of the shorter one, which was under way when the gateway was told to stop."""
    old_epoch: Caller
    """A lease from before revoke-all."""
    epoch: int
    events: int
    """How many events there were before, at least."""
    wrong_clock: httpx.Response
    """The answer of execute while the clock was behind the newest evidence."""


EXECUTE = "/v1/actions/text_digest/execute"


@contextmanager
def restarted(start: Start, _mode: str, folder: Path) -> Iterator[Restart]:
    """Live through it: revoke all, spend, hold, lose a front, have a wrong clock, be stopped, and start again."""
    with start(folder, tables="[limits]\ndrain_seconds = 2.0\n") as gate:
        base = gate.base
        old = gate.agent()
        assert gate.operator().post("/v1/admin/revoke-all").status_code == 200
        agent, lost, cut = gate.agent(max_calls=3), gate.agent(), gate.agent()
        proof = agent.headers("POST", EXECUTE)
        result = gate.client.post(EXECUTE, headers=proof, json={"text": "before"}).json()
        approval_id = gate.held(agent)
        call = dispatched(gate, lost, "spin", LONG)
        with _evidence_of_tomorrow(gate):
            _replace_front(gate)
            wrong = agent.execute("text_digest", {"text": "too early"})
        assert call.status() == 0
        _replace_front(gate)
        short = dispatched(gate, cut, "spin", {"seconds": 0.5}, count=2)
        call = dispatched(gate, cut, "spin", LONG, count=3)
        epoch = gate.operator().get("/v1/admin/epoch").json()["current_epoch"]
        events = len(gate.events(limit=1000))
        assert gate.gateway.stop(seconds=20) == 137
        assert (call.status(), short.status()) == (0, 200)
    with start(folder, top=f'public_base_url = "{base}"\n') as gate:
        agent.http = old.http = gate.client
        again = gate.client.post(EXECUTE, headers=proof, json={"text": "before"})
        yield Restart(
            gate, agent, result, again, approval_id, lost.session_id, cut.session_id, short.status(), old, epoch,
            events, wrong,
        )  # fmt: skip


@contextmanager
def _evidence_of_tomorrow(gate: Deployment) -> Iterator[None]:
    """The newest event is an hour ahead of the clock: a front that starts now knows that one of them is wrong."""
    shift = "update events set time = ? where seq = ?"
    ((seq, real),) = gate.select("ledger", "select seq, time from events order by seq desc limit 1")
    assert gate.change("ledger", shift, int((time.time() + 3600) * 1000), seq) == 1
    yield
    assert gate.change("ledger", shift, real, seq) == 1


def _replace_front(gate: Deployment) -> None:
    """Kill the front and wait for the next."""
    front = gate.gateway.child("front")
    front.send_signal(signal.SIGKILL)
    wait_for(lambda: _is_served(gate, front.pid), "the next front", 20)


def _is_served(gate: Deployment, killed: int) -> bool:
    try:
        fronts = [one.pid for one in gate.gateway.children("front")]
        return fronts not in ([], [killed]) and gate.client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


# ------------------------------------------------------------------------------------------------ outages


@dataclass
class Outage:
    """What a gateway said while its policy engine was gone, and while it did not answer."""

    status: dict[str, Any]
    readiness: httpx.Response
    gone: httpx.Response
    """The answer of a call that would write the file `closed.policy`."""
    frozen: httpx.Response
    """The same, while the engine does not answer."""
    seconds: float
    """How long that answer took."""


def live_through_outage(gate: Deployment) -> Outage:
    """On a gateway that others go on using afterwards."""
    agent, request = gate.agent(), {"path": "closed.policy", "content": "x"}
    with without_policy(gate):
        status, readiness = gate.status(), gate.client.get("/readyz")
        gone = agent.execute("file_write", request)
    with frozen_policy(gate):
        began = time.monotonic()
        frozen = agent.execute("file_write", request)
        seconds = time.monotonic() - began
    return Outage(status, readiness, gone, frozen, seconds)


# ------------------------------------------------------------------------------------------------ a drain


@dataclass
class Drain:
    """A gateway that drains."""

    gate: Deployment
    agent: Caller
    """A lease from before."""
    first: httpx.Response
    """The answer to the drain, while one call was under way."""
    again: httpx.Response
    """The answer to a second one."""
    during: dict[str, Any]
    """Status while the call was under way."""
    refused: httpx.Response
    """The answer to a new call."""
    refused_lease: httpx.Response
    approved: httpx.Response
    """The answer to an approve, afterwards."""
    ended: int
    """The status of the call that was under way."""


@contextmanager
def drained(start: Start, _mode: str, folder: Path) -> Iterator[Drain]:
    """Live through it, with a call under way and a hold that waits."""
    with start(folder) as gate:
        agent, operator = gate.agent(), gate.operator()
        approval_id = gate.held(agent)
        call = dispatched(gate, agent, "spin", {"seconds": 1.2})
        first = operator.post("/v1/admin/drain")
        during = gate.status()
        refused = agent.execute("text_digest", {"text": "x"})
        lease = gate.client.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk})
        approved = operator.post(f"/v1/approvals/{approval_id}/approve")
        again = operator.post("/v1/admin/drain")
        yield Drain(gate, agent, first, again, during, refused, lease, approved, call.status())


# ------------------------------------------------------------------------------------------------ strangers


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@dataclass
class Strangers:
    """A gateway that knows another user than this one, on its sockets and on TCP."""

    gate: Deployment
    socket: httpx.Client
    """Tells the gateway who connects."""
    tcp: httpx.Client
    """Tells nothing."""


@contextmanager
def strangers(start: Start, mode: str, folder: Path) -> Iterator[Strangers]:
    """A gateway with one mapping, which is not of this user."""
    known = f'[identity]\nprovider = "peercred"\n{mapping(os.geteuid() + 1, "somebody-else")}'
    address = f"127.0.0.1:{free_port()}"
    top = f'listen_http_addr = "{address}"\nunsafe_expose_http = true\n' if mode == "run" else ""
    with start(folder, top=top, identity=known) as gate, ExitStack() as stack:
        if mode == "dev":
            yield Strangers(gate, stack.enter_context(over(gate.gateway.ready["client_socket"])), gate.client)
        else:
            yield Strangers(gate, gate.client, stack.enter_context(httpx.Client(base_url=f"http://{address}")))


STORIES: dict[str, Callable[[Start, str, Path], AbstractContextManager[Any]]] = {
    "restart": restarted, "drain": drained, "strangers": strangers,
}  # fmt: skip
