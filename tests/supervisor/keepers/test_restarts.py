"""A process that ends is replaced, and the other processes of the gateway miss no message."""

import os
import signal

import pytest

from ipc.process.exits import Exit
from ipc.settings import WebhookSettings, WorkerSettings
from tests.supervisor.conftest import NONE
from tests.support.processes import is_running
from tests.support.supervised import Running, Start, one_each, wait_until, workers

LASTING = ("notary", "template")
"""Processes that outlive a front."""


def only(state: dict[str, object], profile: str) -> str:
    (worker_id,) = workers(state, profile)
    return worker_id


def another(state: dict[str, object], profile: str, before: str) -> bool:
    """Whether the profile has one worker, and not that one."""
    worker_ids = workers(state, profile)
    return len(worker_ids) == 1 and worker_ids != [before]


def module(reference: str) -> dict[str, object]:
    return {"reference": reference, "path": None, "required_imports": []}


# ------------------------------------------------------------------------- front


def test_a_killed_front_is_replaced_at_once_with_everything_new(gateway: Running) -> None:
    before, family = gateway.state(), gateway.whole_family()
    ends = len(gateway.told("front 1 ended"))
    os.kill(before["pid"], signal.SIGKILL)
    after = gateway.eventually(lambda state: state["pid"] != before["pid"] and len(state["workers"]) == 3)
    (ended,) = gateway.told("front 1 ended")[ends:]
    assert ended["restart_in"] == 0.0
    assert after["front_id"] != before["front_id"]
    assert after["live_fronts"] == [after["front_id"]]
    assert after["policies"] != before["policies"]
    assert not set(after["workers"]) & set(before["workers"])
    assert {title: gateway.whole_family()[title] for title in LASTING} == {title: family[title] for title in LASTING}
    old = [pid for title, pid in family.items() if title not in LASTING]
    wait_until(lambda: not any(is_running(pid) for pid in old))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ({"do": "garbage", "hex": "ffffffff"}, "exceeds the cap"),
        ({"do": "garbage", "hex": "00000001c1"}, "not a message of this direction"),
        ({"do": "send", "message": {"type": "FrontReady", "actions": 1}}, "FrontReady while serving"),
    ],
)
def test_a_front_that_breaks_the_protocol_is_killed_and_replaced(
    gateway: Running, command: dict[str, object], said: str
) -> None:
    before = gateway.state()
    gateway.ask(**command)
    gateway.eventually(lambda state: state["pid"] != before["pid"])
    assert not is_running(before["pid"])
    assert said in gateway.log()


def test_a_front_that_leaves_by_itself_is_replaced(gateway: Running) -> None:
    before = gateway.state()
    gateway.ask(do="exit", code=0)
    gateway.eventually(lambda state: state["pid"] != before["pid"])


# ------------------------------------------------------------------------- notary


def test_a_killed_notary_is_replaced_at_once_and_the_front_is_tied_to_the_next_one(gateway: Running) -> None:
    before, family = gateway.state(), gateway.whole_family()
    ends = len(gateway.told("notary ended"))
    assert before["notaries"][-1] == family["notary"]
    os.kill(family["notary"], signal.SIGKILL)
    after = gateway.eventually(lambda state: len(state["notaries"]) == len(before["notaries"]) + 1)
    (ended,) = gateway.told("notary ended")[ends:]
    assert ended["restart_in"] == 0.0
    assert after["pid"] == before["pid"]
    assert after["workers"] == before["workers"]
    expected = family | {"notary": after["notaries"][-1]}
    wait_until(lambda: gateway.whole_family() == expected)  # a process that starts has another title for a moment


def test_a_killed_notary_is_replaced_for_every_front(start: Start) -> None:
    gateway = start(front_processes=2, workers=WorkerSettings(compute=NONE, http=NONE, fs=NONE))
    os.kill(gateway.whole_family(6)["notary"], signal.SIGKILL)
    seen: dict[str, list[int]] = {}

    def both_have_another() -> bool:
        state = gateway.state()
        seen[state["front_id"]] = state["notaries"]
        return len(seen) == 2 and all(len(pids) == 2 for pids in seen.values())

    wait_until(both_have_another)
    assert [pids[-1] for pids in seen.values()] == [gateway.whole_family(6)["notary"]] * 2


def test_a_front_whose_channel_with_the_notary_ended_is_killed_and_replaced(start: Start) -> None:
    gateway = start(notary={"detaches": 1}, workers=WorkerSettings(compute=NONE, http=NONE, fs=NONE))
    (line,) = wait_until(lambda: gateway.told("front 1 is killed: its channel with the notary has ended"))
    gateway.eventually(lambda state: state["pid"] != line["pid"])
    assert not is_running(line["pid"])
    assert [ended["pid"] for ended in gateway.told("front 1 ended")] == [line["pid"]]
    assert not gateway.told("notary ended")


def test_a_deliverer_whose_channel_with_the_notary_ended_is_killed_and_replaced(start: Start) -> None:
    """Or no webhook would be sent while that notary lives, and nothing would say so."""
    hook = WebhookSettings("hook", "https://hooks.test/", secret="a secret of some length")
    none = WorkerSettings(compute=NONE, http=NONE, fs=NONE)
    gateway = start(notary={"detaches_deliverer": True}, workers=none, webhooks=(hook,), waits=False)
    (line,) = wait_until(lambda: gateway.told("deliverer is killed: its channel with the notary has ended"))
    wait_until(lambda: gateway.told("deliverer ended"))
    assert not is_running(line["pid"])
    wait_until(lambda: gateway.family().get("deliverer") not in (None, line["pid"]))


def test_front_and_notary_may_die_together(gateway: Running) -> None:
    before, family = gateway.state(), gateway.whole_family()
    os.kill(before["pid"], signal.SIGKILL)
    os.kill(family["notary"], signal.SIGKILL)
    after = gateway.eventually(lambda state: state["pid"] != before["pid"] and one_each(state))
    assert after["front_id"] != before["front_id"]

    def is_tied_to_another() -> bool:
        notary = gateway.family().get("notary")  # absent until the next one has its title
        return notary not in (None, family["notary"]) and gateway.state()["notaries"][-1:] == [notary]

    wait_until(is_tied_to_another)


# ------------------------------------------------------------------------- policy


def test_a_policy_process_that_ends_is_replaced_and_attached(gateway: Running) -> None:
    *_, before = gateway.state()["policies"]
    os.kill(before, signal.SIGKILL)
    state = gateway.eventually(lambda state: state["policies"][-1] != before)
    assert gateway.whole_family()["policy 1"] == state["policies"][-1]


def test_a_front_may_have_its_policy_process_replaced_but_only_the_present_one(gateway: Running) -> None:
    *earlier, first = gateway.state()["policies"]
    for _ in range(2):
        gateway.send(type="ReplacePolicy", pid=first, reason="a question took too long")
    state = gateway.eventually(lambda state: state["policies"][-1] != first)
    gateway.send(type="ReplacePolicy", pid=first, reason="too late")
    gateway.send(type="ReplacePolicy", pid=gateway.process.pid, reason="not a policy process")
    assert gateway.state()["policies"] == state["policies"] == [*earlier, first, state["policies"][-1]]
    assert is_running(state["policies"][-1])


def test_a_policy_process_that_was_taken_over_can_not_stop_the_gateway_by_its_exit_code(gateway: Running) -> None:
    *_, before = gateway.state()["policies"]
    gateway.ask(do="policy", text=f"exit {int(Exit.CONFIG)}")
    gateway.eventually(lambda state: state["policies"][-1] != before)
    assert gateway.process.poll() is None


# ------------------------------------------------------------------------- workers


def test_a_killed_worker_is_reported_and_replaced_at_once(gateway: Running) -> None:
    before = gateway.state()
    victim = only(before, "http")
    os.kill(before["workers"][victim][1], signal.SIGKILL)
    after = gateway.eventually(lambda state: another(state, "http", victim))
    assert after["gone"] == [*before["gone"], [victim, "SIGKILL"]]


def test_a_recycled_worker_gets_a_successor_when_the_pool_is_at_its_smallest(gateway: Running) -> None:
    before = gateway.state()
    old = only(before, "fs")
    gateway.ask(do="worker", worker_id=old, text=f"exit {int(Exit.RECYCLED)}")
    after = gateway.eventually(lambda state: another(state, "fs", old))
    assert after["gone"] == [*before["gone"], [old, "RECYCLED"]]


def test_a_pool_grows_on_demand_up_to_its_maximum_and_shrinks_without_successors(gateway: Running) -> None:
    for _ in range(3):
        gateway.send(type="NeedWorker", profile="compute")
    first = workers(gateway.eventually(lambda state: len(workers(state, "compute")) == 2), "compute")
    # The two demands that were over the maximum are met as workers end, and then there are no more.
    for worker_id in first:
        gateway.ask(do="worker", worker_id=worker_id, text=f"exit {int(Exit.RECYCLED)}")
    state = gateway.eventually(lambda state: len(set(workers(state, "compute")) - set(first)) == 2)
    third, fourth = workers(state, "compute")
    gateway.ask(do="worker", worker_id=third, text=f"exit {int(Exit.RECYCLED)}")
    after = gateway.eventually(lambda state: third not in state["workers"])
    assert workers(after, "compute") == [fourth]


def test_a_front_may_kill_its_workers_and_nothing_else(gateway: Running) -> None:
    before = gateway.state()
    victim, other = only(before, "http"), only(before, "fs")
    gateway.send(type="KillWorker", worker_id="no-such-worker", reason="")
    gateway.send(type="NeedWorker", profile="no such profile")
    gateway.send(type="KillWorker", worker_id=victim, reason="past its deadline")
    after = gateway.eventually(lambda state: another(state, "http", victim))
    assert after["gone"] == [*before["gone"], [victim, "SIGKILL"]]
    assert after["workers"][other] == before["workers"][other]


def test_a_worker_that_was_taken_over_can_not_stop_the_gateway_by_its_exit_code(gateway: Running) -> None:
    old = only(gateway.state(), "http")
    gateway.ask(do="worker", worker_id=old, text=f"exit {int(Exit.SANDBOX)}")
    gateway.eventually(lambda state: another(state, "http", old))
    assert gateway.process.poll() is None


# ------------------------------------------------------------------------- template


def test_a_replaced_template_gets_all_modules_and_forks_all_workers_again(gateway: Running) -> None:
    loaded = len(gateway.state()["loaded"])
    gateway.send(type="LoadModules", request_id="more", modules=[module("builtin:http")])
    before = gateway.eventually(lambda state: len(state["loaded"]) == loaded + 1 and one_each(state))
    gone = len(before["gone"])
    family = gateway.whole_family()
    os.kill(family["template"], signal.SIGKILL)
    after = gateway.eventually(lambda state: len(state["gone"]) == gone + 3 and len(state["workers"]) == 3)
    assert {reason for _, reason in after["gone"][gone:]} == {"SIGKILL"}
    assert not set(after["workers"]) & set(before["workers"])
    # Every successor counts as younger than any generation that the front has heard of.
    highest = max(generation for _, generation, _ in before["loaded"])
    assert all(generation > highest for _, _, generation in after["workers"].values())
    wait_until(lambda: not any(is_running(pid) for title, pid in family.items() if "worker" in title))
    gateway.send(type="LoadModules", request_id="again", modules=[module("builtin:echo"), module("builtin:http")])
    last = gateway.eventually(lambda state: len(state["loaded"]) == loaded + 2)["loaded"][-1]
    # The new template had both already: nothing was added by this load.
    assert last == ["again", max(one[2] for one in after["workers"].values()), ["ok", "ok"]]


def test_a_module_that_ends_every_template_is_refused_and_the_gateway_goes_on(start: Start) -> None:
    gateway = start(template={"deadly": ["builtin:poison"]})
    gateway.send(type="LoadModules", request_id="bad", modules=[module("builtin:poison")])
    state = gateway.eventually(lambda state: len(state["loaded"]) == 2 and len(state["workers"]) == 3)
    assert state["loaded"][1][0] == "bad"
    assert state["loaded"][1][2] == ["refused"]


def test_a_refused_module_is_not_loaded_again_into_a_new_template(start: Start) -> None:
    gateway = start(front={"modules": ["builtin:bad"]}, template={"refused": ["builtin:bad"]})
    assert gateway.state()["loaded"] == [["first", 0, ["refused"]]]
    os.kill(gateway.whole_family()["template"], signal.SIGKILL)
    gateway.eventually(lambda state: len(state["gone"]) == 3 and len(state["workers"]) == 3)


@pytest.mark.parametrize("claim", [{"pid": 0}, {"pid": "supervisor"}, {"generation": 2**64 - 1}])
def test_a_template_that_claims_the_impossible_is_replaced_and_harms_no_front(
    start: Start, claim: dict[str, object]
) -> None:
    gateway = start(template={"claims": claim})
    gateway.eventually(one_each)
    assert "template is killed: it broke the protocol" in gateway.log()
    assert not gateway.told("front 1 ended")


def test_front_and_template_may_die_together(gateway: Running) -> None:
    before = gateway.state()
    os.kill(gateway.whole_family()["template"], signal.SIGKILL)
    os.kill(before["pid"], signal.SIGKILL)
    gateway.eventually(lambda state: state["pid"] != before["pid"] and len(state["workers"]) == 3)
