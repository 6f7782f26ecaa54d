"""The supervisor from first start to last exit, with real processes."""

import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from ipc.settings import LimitSettings, PoolSettings, WorkerSettings
from tests.supervisor.conftest import NONE, ONE_EACH, starting
from tests.support.processes import is_running
from tests.support.supervised import Running, Start, wait_until


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Start]]:
    """A gateway that the tests below only look at, and what starts another one in its folder."""
    workers = WorkerSettings(compute=PoolSettings(min_spare=2, max=2), http=ONE_EACH, fs=NONE)
    with starting(tmp_path_factory.mktemp("serving")) as start:
        running = start(workers=workers)
        yield running, start


def test_it_is_ready_when_the_front_serves_and_has_the_workers_that_the_settings_ask_for(
    serving: tuple[Running, Start],
) -> None:
    gateway, _ = serving
    state = gateway.eventually(lambda state: len(state["workers"]) == 3)
    assert sorted(profile for profile, _, _ in state["workers"].values()) == ["compute", "compute", "http"]
    assert sorted(gateway.whole_family()) == [
        "front 1", "notary", "policy 1", "template", "worker compute 1", "worker compute 2", "worker http 1",
    ]  # fmt: skip
    assert state["live_fronts"] == [state["front_id"]]
    assert [kind for kind, _ in state["listeners"]] == ["client", "admin"]


def test_term_stops_every_front_then_the_notary_by_force_if_need_be_and_leaves_nothing(start: Start) -> None:
    gateway = start(front_processes=2, notary={"never_stops": True})
    family = gateway.whole_family(12)
    gateway.signal(signal.SIGTERM)
    assert gateway.process.stdout is not None
    assert gateway.process.stdout.read() == "", "nothing but the ready line comes out on standard output"
    assert gateway.wait() == Exit.OK
    assert not [title for title, pid in family.items() if is_running(pid)]
    assert not os.listdir(Path(gateway.settings.listen_uds_path).parent)
    assert json.loads((Path(gateway.settings.state_dir) / "notary-stopped.json").read_text()) == {"open_fronts": 0}


def test_calls_that_outlive_the_drain_time_are_cut_and_the_exit_code_says_so(start: Start) -> None:
    gateway = start(limits=LimitSettings(drain_seconds=0.6))
    family = gateway.whole_family()
    gateway.ask(do="busy", in_flight=1)
    gateway.ask(do="set", values={"stops": False})
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.KILLED
    assert not [title for title, pid in family.items() if is_running(pid)]


def test_a_stop_waits_for_the_calls_in_flight_and_replaces_their_notary_meanwhile(start: Start) -> None:
    gateway = start()
    gateway.ask(do="busy", in_flight=2)
    gateway.signal(signal.SIGTERM)
    (first,) = gateway.eventually(lambda state: state["drained"])["notaries"]
    os.kill(first, signal.SIGKILL)
    gateway.eventually(lambda state: len(state["notaries"]) == 2)
    assert [ended["reason"] for ended in gateway.told("notary ended")] == ["SIGKILL"]
    gateway.ask(do="busy", in_flight=1)
    assert gateway.state()["stopping"] is False
    gateway.ask(do="busy", in_flight=0)
    assert gateway.wait() == Exit.OK


@pytest.mark.parametrize(("first", "second"), [(signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)])
def test_term_and_int_drain_and_a_second_one_of_either_ends_it_now(
    start: Start, first: signal.Signals, second: signal.Signals
) -> None:
    gateway = start()
    gateway.ask(do="busy", in_flight=1)
    gateway.signal(first)
    gateway.eventually(lambda state: state["drained"])
    gateway.signal(second)
    assert gateway.wait() == Exit.KILLED


def test_a_front_that_crashes_while_it_drains_is_not_called_a_clean_stop(start: Start) -> None:
    gateway = start()
    gateway.ask(do="busy", in_flight=1)
    gateway.signal(signal.SIGTERM)
    gateway.eventually(lambda state: state["drained"])
    gateway.ask(do="exit", code=1)
    assert gateway.wait() == Exit.FAILED


def test_a_drain_asked_for_while_it_stops_changes_nothing(start: Start) -> None:
    gateway = start()
    gateway.ask(do="set", values={"stops": False})
    gateway.signal(signal.SIGTERM)
    wait_until(lambda: gateway.state()["stopping"])
    gateway.send(type="RequestDrain")
    gateway.send(type="RequestReload", request_id="late", requested_by="ada")
    wait_until(lambda: "no front is serving" in gateway.log())
    gateway.ask(do="exit", code=0)
    assert gateway.wait() == Exit.OK


def test_before_it_is_ready_a_connection_waits_for_the_front_and_term_stops_it(start: Start) -> None:
    gateway = start(front={"never_ready": True}, waits=False)
    wait_until(lambda: os.path.exists(gateway.settings.listen_uds_path))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        wait_until(lambda: sock.connect_ex(gateway.settings.listen_uds_path) == 0)
        sock.sendall(b'{"do": "state"}\n')
        assert sock.makefile("rb").readline()
    gateway.eventually(lambda state: len(state["workers"]) == 3)
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.OK


@pytest.mark.parametrize(("kind", "code"), [
    ("front", Exit.CONFIG), ("notary", Exit.UNAVAILABLE), ("template", Exit.SANDBOX),
])  # fmt: skip
def test_a_child_that_can_not_start_stops_the_gateway_with_its_own_code(start: Start, kind: str, code: Exit) -> None:
    """The front is never ready: a fake one would be without a notary, and then the gateway has served."""
    assert start(**{"front": {"never_ready": True}, kind: {"exit_at_start": int(code)}}, waits=False).wait() == code


def test_a_child_that_never_comes_up_is_given_up_after_a_few_tries(start: Start) -> None:
    gateway = start(template={"exit_at_start": 1}, waits=False)
    assert gateway.wait() == Exit.FAILED
    assert len(gateway.told("template ended")) == 5
    assert "template ended with FAILED 5 times in a row; starting it again would not help" in gateway.log()


def test_a_front_that_is_refused_its_configuration_later_tries_again_and_one_without_its_rights_stops_the_gateway(
    start: Start,
) -> None:
    gateway = start(front_processes=2)
    gateway.ask(do="exit", code=int(Exit.CONFIG))
    wait_until(lambda: len(gateway.told("front 1 is ready")) + len(gateway.told("front 2 is ready")) == 3)
    assert gateway.process.poll() is None
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
    second = start(waits=False)
    assert second.wait() == Exit.LOCKED
    assert f"held by another gateway (pid {gateway.process.pid})" in second.log()
    assert gateway.state()
