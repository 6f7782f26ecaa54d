"""Standing approvals on a whole gateway of two fronts: counted exactly, kept over deaths, whole in evidence."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gateway_client import AgentClient, AsyncOperatorClient, Executed, Held, OperatorClient, OperatorCredential

from tests.support.gateway import Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.played_supervisor_of_notary import checked_offline
from tests.support.upstream import Upstream

CALLS, MOST = 10, 6


def credential(gate: Gateway) -> OperatorCredential:
    return OperatorCredential.load(gate.state / "operator.key", gate.state / "operator.pem")


def paid(gate: Gateway, amount: int) -> str:
    """Return `ran` or `held` for a payment by an agent of its own."""
    gate.paces.leases.wait()
    with AgentClient(gate.base) as agent:
        answer = agent.execute("payment_transfer", {"to": "acct-7", "amount_cents": amount, "currency": "EUR"})
    assert isinstance(answer, Executed | Held)
    return "ran" if isinstance(answer, Executed) else "held"


def test_calls_of_two_fronts_use_it_as_often_as_it_is_good_for_and_deaths_forget_none(
    up: Upstream, tmp_path: Path
) -> None:
    config = config_for(up.address, f"front_processes = 2\n{patient(tmp_path / 'actions')}")
    with gateway(tmp_path, config) as gate, OperatorClient(gate.base, credential(gate)) as operator:
        until = int(time.time()) + 3600
        added = operator.add_standing("payment_transfer", "dev:anonymous", until, max_calls=MOST + 1)
        with ThreadPoolExecutor(CALLS) as pool:
            became = list(pool.map(lambda amount: paid(gate, amount), range(1, MOST + 1)))
        assert became == ["ran"] * MOST
        killed = gate.child("notary")
        killed.kill()
        wait_for(lambda: {*gate.children("notary")} - {killed} and gate.is_ready(), "another notary")
        with ThreadPoolExecutor(CALLS) as pool:
            became = list(pool.map(lambda amount: paid(gate, amount), range(101, 101 + CALLS)))
        assert (became.count("ran"), became.count("held")) == (1, CALLS - 1)
        assert [one.calls for one in operator.standing_approvals().standing] == [MOST + 1]
    with gateway(tmp_path, config) as gate, OperatorClient(gate.base, credential(gate)) as operator:
        (kept,) = operator.standing_approvals().standing
        assert (kept.standing_id, kept.calls, kept.signature) == (added.standing_id, MOST + 1, added.signature)
        assert paid(gate, 201) == "held"
        again = operator.add_standing("payment_transfer", "dev:anonymous", until)
        assert paid(gate, 202) == "ran"
        assert operator.revoke_standing(again.standing_id).calls == 1
        assert paid(gate, 203) == "held"
        used = [one["standing_id"] for one in gate.events(event_type="ActionCall") if "standing_id" in one]
        assert sorted(used) == sorted([added.standing_id] * (MOST + 1) + [again.standing_id])
    checked_offline(gate.state)


async def test_the_client_without_threads_adds_lists_and_revokes(up: Upstream, tmp_path: Path) -> None:
    with gateway(tmp_path, config_for(up.address, patient(tmp_path / "actions"))) as gate:
        async with AsyncOperatorClient(gate.base, credential(gate)) as operator:
            where = [{"pointer": "/amount_cents", "op": "<=", "value": 5}]
            until = int(time.time()) + 3600
            added = await operator.add_standing("payment_transfer", "dev:anonymous", until, where=where)
            assert [(one.op, one.value) for one in added.where] == [("<=", 5)]
            assert (await operator.standing_approvals()).standing == (added,)
            assert (await operator.revoke_standing(added.standing_id)).calls == 0
