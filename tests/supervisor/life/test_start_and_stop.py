"""The supervisor from first start to last exit, with real processes."""

import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.process.exits import Exit
from ipc.settings import LimitSettings, PoolSettings, WorkerSettings
from tests.supervisor.conftest import starting
from tests.support.supervised import Running, Start, is_alive, wait_until


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Start]]:
    """A gateway that the tests below only look at, and what starts another one in its folder."""
    with starting(tmp_path_factory.mktemp("serving")) as start:
        running = start()
        running.wait_ready()
        yield running, start


def test_it_is_ready_when_the_front_serves_and_has_its_first_workers(serving: tuple[Running, Start]) -> None:
    gateway, _ = serving
    state = gateway.eventually(lambda state: len(state["workers"]) == 3)
    assert sorted(profile for profile, _, _ in state["workers"].values()) == ["compute", "fs", "http"]
    assert sorted(gateway.whole_family()) == [
        "front 1", "notary", "policy 1", "template", "worker compute 1", "worker fs 1", "worker http 1",
    ]  # fmt: skip
    assert state["live_fronts"] == [state["front_id"]]
    assert [kind for kind, _ in state["listeners"]] == ["client", "admin"]


def test_workers_start_with_the_number_that_the_settings_ask_for(start: Start) -> None:
    none, two = PoolSettings(min_spare=0, max=1), PoolSettings(min_spare=2, max=2)
    gateway = start(workers=WorkerSettings(compute=two, http=none, fs=none))
    gateway.wait_ready()
    assert sorted(title for title in gateway.whole_family(6) if "worker" in title) == [
        "worker compute 1",
        "worker compute 2",
    ]


def test_term_stops_everything_and_leaves_neither_process_nor_socket(start: Start) -> None:
    gateway = start()
    gateway.wait_ready()
    family = gateway.whole_family()
    gateway.signal(signal.SIGTERM)
    assert gateway.process.stdout is not None
    assert gateway.process.stdout.read() == "", "nothing but the ready line comes out on standard output"
    assert gateway.wait() == Exit.OK
    assert not [title for title, pid in family.items() if is_alive(pid)]
    assert not os.listdir(Path(gateway.settings.listen_uds_path).parent)


def test_the_notary_is_stopped_once_every_front_is_gone(start: Start) -> None:
    gateway = start(front_processes=2)
    gateway.wait_ready()
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.OK
    assert json.loads((Path(gateway.settings.state_dir) / "notary-stopped.json").read_text()) == {"open_fronts": 0}


def test_a_notary_that_does_not_leave_is_killed(start: Start) -> None:
    gateway = start(notary={"never_stops": True})
    gateway.wait_ready()
    family = gateway.whole_family()
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.OK
    assert not [title for title, pid in family.items() if is_alive(pid)]


def test_a_notary_that_dies_in_a_stop_is_replaced_while_a_front_is_left(start: Start) -> None:
    gateway = start()
    gateway.wait_ready()
    gateway.ask(do="busy", in_flight=1)
    gateway.signal(signal.SIGTERM)
    (first,) = gateway.eventually(lambda state: state["drained"])["notaries"]
    os.kill(first, signal.SIGKILL)
    gateway.eventually(lambda state: len(state["notaries"]) == 2)
    assert [ended["reason"] for ended in gateway.told("notary ended")] == ["SIGKILL"]
    gateway.ask(do="busy", in_flight=0)
    assert gateway.wait() == Exit.OK


def test_calls_that_outlive_the_drain_time_are_cut_and_the_exit_code_says_so(start: Start) -> None:
    gateway = start(limits=LimitSettings(drain_seconds=0.6))
    gateway.wait_ready()
    family = gateway.whole_family()
    gateway.ask(do="busy", in_flight=1)
    gateway.ask(do="set", values={"stops": False})
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.KILLED
    assert not [title for title, pid in family.items() if is_alive(pid)]


def test_a_stop_waits_for_the_calls_in_flight(start: Start) -> None:
    gateway = start()
    gateway.wait_ready()
    gateway.ask(do="busy", in_flight=2)
    gateway.signal(signal.SIGTERM)
    for in_flight in (2, 1):
        gateway.ask(do="busy", in_flight=in_flight)
        gateway.eventually(lambda state: state["drained"])
        assert gateway.process.poll() is None
    gateway.ask(do="busy", in_flight=0)
    assert gateway.wait() == Exit.OK


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_term_and_int_drain_and_a_second_one_of_either_ends_it_now(
    start: Start, first: signal.Signals, second: signal.Signals
) -> None:
    gateway = start()
    gateway.wait_ready()
    gateway.ask(do="busy", in_flight=1)
    gateway.signal(first)
    gateway.eventually(lambda state: state["drained"])
    gateway.signal(second)
    assert gateway.wait() == Exit.KILLED


def test_a_front_that_crashes_while_it_drains_is_not_called_a_clean_stop(start: Start) -> None:
    gateway = start()
    gateway.wait_ready()
    gateway.ask(do="busy", in_flight=1)
    gateway.signal(signal.SIGTERM)
    gateway.eventually(lambda state: state["drained"])
    gateway.ask(do="exit", code=1)
    assert gateway.wait() == Exit.FAILED


def test_a_drain_asked_for_while_it_stops_changes_nothing(start: Start) -> None:
    gateway = start()
    gateway.wait_ready()
    gateway.ask(do="set", values={"stops": False})
    gateway.signal(signal.SIGTERM)
    wait_until(lambda: gateway.state()["stopping"])
    gateway.send(type="RequestDrain")
    gateway.send(type="RequestReload", request_id="late", requested_by="ada")
    wait_until(lambda: "no front is serving" in gateway.log())
    gateway.ask(do="exit", code=0)
    assert gateway.wait() == Exit.OK


def test_term_before_it_is_ready_stops_too(start: Start) -> None:
    gateway = start(front={"never_ready": True})
    gateway.eventually(lambda state: len(state["workers"]) == 3)
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.OK


@pytest.mark.parametrize("code", [Exit.CONFIG, Exit.NO_PERMISSION, Exit.UNAVAILABLE])
def test_a_front_that_can_not_start_stops_the_gateway_with_its_own_code(start: Start, code: Exit) -> None:
    gateway = start(front={"exit_at_start": int(code)})
    assert gateway.wait() == code


def test_a_template_without_its_sandbox_stops_the_gateway(start: Start) -> None:
    assert start(template={"exit_at_start": int(Exit.SANDBOX)}).wait() == Exit.SANDBOX


@pytest.mark.parametrize("code", [Exit.CONFIG, Exit.NO_PERMISSION, Exit.UNAVAILABLE])
def test_a_notary_that_can_not_start_stops_the_gateway_with_its_own_code(start: Start, code: Exit) -> None:
    assert start(notary={"exit_at_start": int(code)}).wait() == code


@pytest.mark.parametrize(("name", "scripts"), [
    ("notary", {"notary": {"exit_at_start": 1}, "front": {"never_ready": True}}),
    ("front 1", {"front": {"exit_at_start": 1}}),
])  # fmt: skip
def test_a_child_that_never_comes_up_is_given_up_after_a_few_tries(
    start: Start, name: str, scripts: dict[str, Any]
) -> None:
    gateway = start(**scripts)
    assert gateway.wait() == Exit.FAILED
    assert len(gateway.told(f"{name} ended")) == 5


def test_a_front_that_is_refused_its_configuration_later_tries_again_and_others_go_on(start: Start) -> None:
    gateway = start(front_processes=2)
    gateway.wait_ready()
    gateway.ask(do="exit", code=int(Exit.CONFIG))
    wait_until(lambda: len(gateway.told("front 1 is ready")) + len(gateway.told("front 2 is ready")) == 3)
    assert gateway.process.poll() is None


def test_a_front_that_has_lost_its_rights_later_stops_the_gateway(start: Start) -> None:
    gateway = start()
    gateway.wait_ready()
    gateway.ask(do="exit", code=int(Exit.NO_PERMISSION))
    assert gateway.wait() == Exit.NO_PERMISSION


def test_children_see_a_small_environment_and_a_root_folder(serving: tuple[Running, Start]) -> None:
    gateway, _ = serving
    assert set(gateway.state()["environment"]) <= {
        "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "NO_COLOR", "SSL_CERT_FILE", "SSL_CERT_DIR", "JOURNAL_STREAM",
        "GATEWAY_LOG_LEVEL",
    }  # fmt: skip
    for title in ("front 1", "notary", "policy 1", "template"):
        assert os.readlink(f"/proc/{gateway.whole_family()[title]}/cwd") == "/"


def test_children_have_sessions_of_their_own_so_that_a_terminal_reaches_only_the_supervisor(
    serving: tuple[Running, Start],
) -> None:
    gateway, _ = serving
    family = gateway.whole_family()
    assert {os.getsid(family[title]) for title in ("front 1", "notary", "policy 1", "template")} == {
        family[title] for title in ("front 1", "notary", "policy 1", "template")
    }


def test_the_sockets_have_their_modes_and_the_second_gateway_is_refused(serving: tuple[Running, Start]) -> None:
    gateway, start = serving
    modes = [
        stat.S_IMODE(os.stat(path).st_mode)
        for path in (gateway.settings.listen_uds_path, gateway.settings.listen_admin_uds_path)
    ]
    assert modes == [0o660, 0o600]
    second = start()
    assert second.wait() == Exit.LOCKED
    assert f"held by another gateway (pid {gateway.process.pid})" in second.log()
    assert gateway.state()


def test_a_state_directory_is_free_again_after_a_kill_and_stale_sockets_are_replaced(start: Start) -> None:
    first = start()
    first.wait_ready()
    family = first.whole_family()
    first.process.kill()
    first.process.wait(60)
    wait_until(lambda: not any(is_alive(pid) for pid in family.values()))
    assert os.path.exists(first.settings.listen_uds_path)
    second = start()
    second.wait_ready()
    assert second.state()["front_id"]


def test_a_connection_made_before_the_front_is_up_is_served(start: Start) -> None:
    gateway = start()
    wait_until(lambda: os.path.exists(gateway.settings.listen_uds_path))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        wait_until(lambda: sock.connect_ex(gateway.settings.listen_uds_path) == 0)
        sock.sendall(b'{"do": "state"}\n')
        assert sock.makefile("rb").readline()
