"""New operators reach what took no part in a reload before it is answered: the notary, and fronts that only start."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import msgspec

from ipc.settings import LimitSettings, OperatorSettings, PoolSettings, WorkerSettings
from tests.support.processes import is_running
from tests.support.supervised import Running, Start, wait_until

NONE = PoolSettings(min_spare=0, max=1)
NO_WORKERS = WorkerSettings(compute=NONE, http=NONE, fs=NONE)
ANN, BOB = (OperatorSettings(name, dpop_jkt=name, api_key_sha256=name) for name in ("ann", "bob"))


def rewrite(gateway: Running, **changes: Any) -> None:
    """The configuration file as the next reload finds it."""
    settings = msgspec.structs.replace(gateway.settings, **changes)
    in_state(gateway, "settings.json").write_bytes(msgspec.json.encode(settings))


def in_state(gateway: Running, name: str) -> Path:
    return Path(gateway.settings.state_dir) / name


def reload(gateway: Running) -> dict[str, Any]:
    """The log's line about it."""
    before = len(gateway.told("reloaded"))
    gateway.signal(signal.SIGHUP)
    return wait_until(lambda: gateway.told("reloaded")[before:])[0]  # type: ignore[no-any-return]


def with_a_front_that_starts_for_ever(start: Start, script: dict[str, Any], **more: Any) -> Running:
    """Two fronts, of which the second has a successor that is not ready."""
    gateway = start(front_processes=2, operators=(ANN, BOB), workers=NO_WORKERS, **more)
    in_state(gateway, "fake-front.json").write_text(json.dumps({"never_ready": True} | script))
    old = gateway.states()["front 2"]
    os.kill(old["pid"], signal.SIGKILL)
    wait_until(lambda: gateway.states()["front 2"]["front_id"] != old["front_id"])
    return gateway


def test_a_starting_front_and_the_notary_learn_that_an_operator_is_removed(start: Start) -> None:
    gateway = with_a_front_that_starts_for_ever(start, {})
    rewrite(gateway, operators=(ANN,))
    assert reload(gateway)["settings"] == ["operators"]
    late = gateway.states()["front 2"]
    assert (late["started_with"], late["follows"], late["reloads"]) == (["ann", "bob"], [["ann"]], [])
    assert json.loads(in_state(gateway, "notary-follows.json").read_text()) == ["ann"]


def test_a_child_that_does_not_follow_is_replaced_before_the_reload_is_answered(start: Start) -> None:
    gateway = with_a_front_that_starts_for_ever(start, {"never_follows": True}, notary={"never_follows": True})
    late = gateway.states()["front 2"]["pid"]
    notary = wait_until(lambda: gateway.family().get("notary"))  # it has its title a moment after its start
    in_state(gateway, "fake-front.json").write_text("{}")
    rewrite(gateway, operators=(ANN,))
    reload(gateway)
    assert not is_running(late)
    assert not is_running(notary)
    gateway.eventually(lambda state: state["pid"] != late and state["started_with"] == ["ann"])


def test_a_reload_with_the_same_operators_sends_nothing_and_names_settings_that_need_a_restart(start: Start) -> None:
    gateway = with_a_front_that_starts_for_ever(start, {})
    rewrite(gateway, operators=(ANN, BOB), lease_ttl_seconds=77, limits=LimitSettings(max_in_flight=9))
    assert "settings" not in reload(gateway)
    named = ["lease_ttl_seconds", "limits.drain_seconds", "limits.max_in_flight"]
    (line,) = wait_until(lambda: gateway.told("settings have changed that need a restart"))
    assert line["settings"] == named
    assert gateway.states()["front 2"]["follows"] == []
    assert not in_state(gateway, "notary-follows.json").exists()
