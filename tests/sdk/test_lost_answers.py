"""Executes whose answers are lost on the way from a running gateway: threads, asyncio and trio."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from gateway_client import Address, AgentClient, AsyncAgentClient, Executed, Unreachable

from tests.support.gateway import Gateway
from tests.support.lossy_link import LossyLink, lossy_link
from tests.support.upstream import Upstream


@pytest.fixture
def link(gate: Gateway, tmp_path: Path) -> Iterator[LossyLink]:
    with lossy_link(gate.ready["client_socket"], tmp_path) as link:
        yield link


def through(link: LossyLink, gate: Gateway) -> Address:
    return Address.parse(f"unix://{link.socket}", gate.base)


def posted(up: Upstream, path: str) -> int:
    return sum(one.path == f"/{path}" for one in up.seen)


def test_a_lost_answer_is_told_from_the_receipt_and_the_upstream_is_called_once(
    gate: Gateway, link: LossyLink, up: Upstream
) -> None:
    link.losses = {"/execute": 3}
    with AgentClient(through(link, gate)) as agent:
        done = agent.execute("http_post", {"path": "lost/once", "message": "a"})
        assert isinstance(done, Executed)
        assert done.is_fully_successful
        assert done.receipt is not None
        states = [(one.state, one.error) for one in agent.calls().calls]
    assert (link.lost, posted(up, "lost/once")) == (3, 1)
    assert states == [("executed", None)]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_tasks_hear_the_outcome_of_a_lost_call(gate: Gateway, link: LossyLink, up: Upstream, backend: str) -> None:
    link.losses = {"/execute": 1}

    async def call() -> None:
        async with AsyncAgentClient(through(link, gate)) as agent:
            done = await agent.execute("http_post", {"path": f"lost/{backend}", "message": "a"})
            assert isinstance(done, Executed)

    anyio.run(call, backend=backend)
    assert (link.lost, posted(up, f"lost/{backend}")) == (1, 1)


def test_a_call_that_never_heard_its_outcome_is_asked_for_by_another_client(
    gate: Gateway, link: LossyLink, up: Upstream
) -> None:
    link.losses = {"/execute": 99, "/v1/calls?limit=1": 99}
    request = {"path": "lost/later", "message": "a"}
    with AgentClient(through(link, gate)) as agent:
        agent.renew()  # the two seconds are the call's alone
        with pytest.raises(Unreachable) as raised:
            agent.execute("http_post", request, timeout=2)
    assert raised.value.may_have_run
    with AgentClient(gate.base) as other:
        done = other.execute("http_post", request, idempotency_key=raised.value.idempotency_key)
    assert isinstance(done, Executed)
    assert posted(up, "lost/later") == 1
