"""The processes of a running gateway: their names, what they hold, and other gateways beside them.

Their walls are looked at from outside, through the kernel's own account of them.
"""

import os
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.support.gateway import Gateway, config_for, gateway, wait_for
from tests.support.processes import (
    CANARY,
    FRONT_MEMORY,
    attempt,
    descriptors,
    family,
    holds_text,
    is_dumpable,
    pids,
)
from tests.support.upstream import Upstream

IS_ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root may look into a process that is not dumpable")
WORKERS = ("worker compute 1", "worker http 1", "worker fs 1")


@pytest.fixture(scope="module")
def gate(watched: Gateway) -> Gateway:
    """The gateway that is looked at from outside."""
    return watched


# ------------------------------------------------------------------------------------------------ names and walls


def test_ps_shows_every_process_by_name(gate: Gateway) -> None:
    assert set(pids(gate)) == {"supervisor", "front 1", "notary", "policy 1", "template", *WORKERS}


def test_the_template_is_the_parent_of_the_workers_and_the_supervisor_of_the_rest(gate: Gateway) -> None:
    pid_by_name = pids(gate)
    parents = {name: psutil.Process(pid).ppid() for name, pid in pid_by_name.items() if name != "supervisor"}
    assert parents == dict.fromkeys(
        ("front 1", "notary", "policy 1", "template"), pid_by_name["supervisor"]
    ) | dict.fromkeys(WORKERS, pid_by_name["template"])
    sessions = {name: os.getsid(pid) for name, pid in pid_by_name.items()}
    assert sessions["front 1"] == pid_by_name["front 1"]  # a terminal's ctrl-C reaches the supervisor alone
    assert pid_by_name["supervisor"] not in [session for name, session in sessions.items() if name != "supervisor"]


@only_root
@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_holds_its_two_channels_and_nothing_else(gate: Gateway, name: str) -> None:
    def held() -> Counter[str]:
        by_number = descriptors(pids(gate)[name])
        assert [by_number.pop(number) for number in (0, 1, 2)] == ["/dev/null", "/dev/null", str(gate.log)]
        return Counter(what.split(":")[0] for what in by_number.values())

    wakes = {"anon_inode": 1} if "http" in name else {}  # by which its threads wake its loop
    wait_for(lambda: held() == {"socket": 2, **wakes}, "the end of connections to upstreams that it keeps")


@only_root
def test_the_policy_process_holds_its_channel_and_nothing_else(gate: Gateway) -> None:
    held = descriptors(pids(gate)["policy 1"])
    assert [held.pop(number) for number in (0, 1, 2)] == ["/dev/null", str(gate.log), str(gate.log)]
    assert [what.split(":")[0] for what in held.values()] == ["socket"]


@only_root
def test_the_template_holds_its_channel_and_a_handle_for_each_worker_and_no_file_of_a_module(gate: Gateway) -> None:
    held = descriptors(pids(gate)["template"])
    assert [held.pop(number) for number in (0, 1, 2)] == ["/dev/null", str(gate.log), str(gate.log)]
    assert Counter(what.split(":[")[0] for what in held.values()) == {"socket": 1, "anon_inode": len(WORKERS)}


@only_root
def test_the_notary_holds_the_database_and_channels_to_front_and_workers_and_no_network(gate: Gateway) -> None:
    def held_now() -> dict[int, str] | None:
        """Not while it writes a checkpoint to its file, and the file to its folder, which takes a moment."""
        by_number = descriptors(pids(gate)["notary"])
        return None if {f"{gate.state}/checkpoints", str(gate.state)} & {*by_number.values()} else by_number

    held = wait_for(held_now, "the end of a checkpoint")
    assert [held.pop(number) for number in (0, 1, 2)] == ["/dev/null", str(gate.log), str(gate.log)]
    files = {what.removeprefix(f"{gate.state}/") for what in held.values() if what.startswith("/")}
    assert files == {f"ledger.sqlite3{name}" for name in ("", "-wal", "-shm")}
    others = [what.split(":[")[0] for what in held.values() if not what.startswith("/")]
    # The supervisor, the front, and both ends of each worker's channel; epoll.
    assert Counter(others) == {"socket": 2 + 2 * len(WORKERS), "anon_inode": 1}
    assert not network_sockets() & set(held.values())


@only_root
def test_the_supervisor_holds_sockets_and_its_lock_and_neither_database_nor_key(gate: Gateway) -> None:
    held = descriptors(gate.process.pid)
    files = [what for number, what in held.items() if number > 2 and what.startswith("/")]
    inherited = str(gate.log.with_name("inherited"))
    assert sorted(files) == sorted([inherited, str(gate.state / "gateway.lock"), FRONT_MEMORY])


@only_root
def test_what_the_supervisor_inherited_reaches_no_child(gate: Gateway) -> None:
    assert holds_text(gate.process.pid, CANARY.encode())
    inherited = str(gate.log.with_name("inherited"))
    for pid, name in family(gate.process.pid).items():
        assert inherited not in descriptors(pid).values(), name
        assert CANARY.encode() not in Path(f"/proc/{pid}/environ").read_bytes(), name
        assert not holds_text(pid, CANARY.encode()), name


@only_root
def test_the_operators_credential_is_in_the_front_alone(gate: Gateway) -> None:
    operator = (gate.state / "operator.key").read_text().strip().encode()
    for pid, name in pids_and_names(gate):
        assert name == "front 1" or not holds_text(pid, operator), name


def pids_and_names(gate: Gateway) -> list[tuple[int, str]]:
    """Every process but the supervisor."""
    return [(pid, name) for name, pid in pids(gate).items() if name != "supervisor"]


def network_sockets() -> set[str]:
    """Every TCP and UDP socket of this machine, as a descriptor of it shows."""
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6", "udp", "udp6")]
    lines = [line for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return {f"socket:[{line.split()[9]}]" for line in lines}


@only_root
def test_a_secret_is_in_no_process_that_did_not_use_it(gate: Gateway) -> None:
    secret = (gate.state / "secrets.json").read_text().split('"upstream_token": "')[1].split('"')[0].encode()
    for pid, name in family(gate.process.pid).items():
        if "front" not in name and "worker http" not in name:
            assert not holds_text(pid, secret), name


def test_no_process_can_be_looked_into_by_its_own_user(gate: Gateway) -> None:
    for name, pid in pids(gate).items():
        assert not is_dumpable(pid), name


def test_no_process_listens_but_where_it_was_told_to(gate: Gateway) -> None:
    port = int(gate.ready["base_url"].rsplit(":", 1)[1])
    inodes = {
        line.split()[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and int(line.split()[1].split(":")[1], 16) == port
    }
    assert len(inodes) == 1
    if IS_ROOT:
        holders = {
            name for name, pid in pids(gate).items() if f"socket:[{next(iter(inodes))}]" in descriptors(pid).values()
        }
        assert holders == {"supervisor", "front 1"}


# ------------------------------------------------------------------------------------------------ beside another one


def test_a_state_directory_that_another_gateway_holds_is_left_to_that_one(gate: Gateway) -> None:
    before = set(os.listdir(gate.state))
    done = attempt("dev", "--listen", "127.0.0.1:0", "--state-dir", str(gate.state))
    assert (done.returncode, done.stdout) == (75, ""), done.stderr
    assert f"is held by another gateway (pid {gate.process.pid})." in done.stderr
    assert set(os.listdir(gate.state)) == before
    wait_for(lambda: gate.http.get("/readyz").json()["status"] == "ready", "readiness")
    with gate.over("client_socket") as client:
        assert client.get("/healthz").status_code == 200


def test_two_gateways_side_by_side_do_not_know_of_each_other(gate: Gateway, up: Upstream, tmp_path: Path) -> None:
    with gateway(tmp_path, config_for(up.address)) as other:
        assert other.base != gate.base
        mine, theirs = gate.agent(), other.agent()
        for agent in (mine, theirs):
            assert agent.execute("file_write", {"path": "side", "content": agent.base}).status_code == 200
        assert (gate.state / "files" / "side").read_text() == gate.base
        assert (other.state / "files" / "side").read_text() == other.base
        assert theirs.session_id not in [event.get("session_id") for event in gate.events(limit=1000)]
        assert gate.operator().token != other.operator().token
        assert other.stop() == 0
    assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
