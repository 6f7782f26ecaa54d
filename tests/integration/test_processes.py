"""The processes of a running gateway: their names, what they hold, how they end, and what makes them refuse to start.

Their walls are looked at from outside, through the kernel's own account of them.
"""

import os
import signal
import socket
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.background import Background, HeldCall, in_flight
from tests.support.gateway import START_SECONDS, STOP_SECONDS, Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import ENDLESS, PATIENT, all_examples, example, open_policy, patient, write_manifests
from tests.support.processes import (
    NOBODYS_GROUP,
    attempt,
    descriptors,
    family,
    holds_text,
    is_dumpable,
    is_running,
    launched,
    limits,
    sentences,
    started,
    status,
    title,
)
from tests.support.upstream import Upstream

IS_ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root may look into a process that is not dumpable")
WORKERS = ("worker compute 1", "worker http 1", "worker fs 1")
SPIN = {"fuel": 0, "memory_mb": 0, "seconds": 250}
"""Ends when its worker or its gateway does."""
CANARY = "canary-3f1c0d7a9b"


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that was handed more than it should pass on: a descriptor, and a secret in its environment."""
    folder: Path = tmp_path_factory.mktemp("gate")
    with (folder / "inherited").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        more = {"pass_fds": (file.fileno(),), "group": NOBODYS_GROUP if IS_ROOT else None}
        config = config_for(up.address, patient(folder / "actions"))
        with started(folder, config, AWS_SECRET_ACCESS_KEY=CANARY, **more) as running:  # type: ignore[arg-type]
            agent = running.agent()
            for action, body in (
                ("text_digest", {"text": "x"}), ("file_write", {"path": "a", "content": "b"}),
                ("http_post", {"path": "a", "message": "b"}),
            ):  # fmt: skip
                assert agent.execute(action, body).status_code == 200
            yield running


def pids(gate: Gateway) -> dict[str, int]:
    """Title without `gateway: ` -> pid, the supervisor included."""
    found = family(gate.process.pid) | {gate.process.pid: title(gate.process.pid)}
    return {name.removeprefix("gateway: "): pid for pid, name in found.items()}


def all_gone(known: dict[int, str]) -> None:
    wait_for(lambda: not [name for pid, name in known.items() if is_running(pid)], "the end of every process")


# ------------------------------------------------------------------------------------------------ names and walls


def test_ps_shows_every_process_by_name(gate: Gateway) -> None:
    assert set(pids(gate)) == {"supervisor", "front 1", "policy 1", "template", *WORKERS}


def test_the_template_is_the_parent_of_the_workers_and_the_supervisor_of_the_rest(gate: Gateway) -> None:
    found = pids(gate)
    parents = {name: psutil.Process(pid).ppid() for name, pid in found.items() if name != "supervisor"}
    assert parents == dict.fromkeys(("front 1", "policy 1", "template"), found["supervisor"]) | dict.fromkeys(
        WORKERS, found["template"]
    )
    sessions = {name: os.getsid(pid) for name, pid in found.items()}
    assert sessions["front 1"] == found["front 1"]  # a terminal's ctrl-C reaches the supervisor alone
    assert found["supervisor"] not in [session for name, session in sessions.items() if name != "supervisor"]


@only_root
@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_holds_its_channel_and_nothing_else(gate: Gateway, name: str) -> None:
    held = descriptors(pids(gate)[name])
    assert [held.pop(number) for number in (0, 1, 2)] == ["/dev/null", "/dev/null", str(gate.log)]
    assert [what.split(":")[0] for what in held.values()] == ["socket"]


@only_root
def test_the_policy_process_holds_its_channel_and_nothing_else(gate: Gateway) -> None:
    held = descriptors(pids(gate)["policy 1"])
    assert [held.pop(number) for number in (0, 1, 2)] == ["/dev/null", str(gate.log), str(gate.log)]
    assert [what.split(":")[0] for what in held.values()] == ["socket"]


@only_root
def test_the_template_holds_its_channel_the_mapped_modules_and_a_handle_for_each_worker(gate: Gateway) -> None:
    held = descriptors(pids(gate)["template"])
    assert [held.pop(number) for number in (0, 1, 2)] == ["/dev/null", str(gate.log), str(gate.log)]
    cache = str(gate.state / "modules-cache")
    kinds = Counter(cache if what.startswith(cache) else what.split(":[")[0] for what in held.values())
    assert kinds == {"socket": 1, "anon_inode": len(WORKERS), cache: 5}


@only_root
def test_the_front_holds_sockets_and_its_two_stores_and_no_key(gate: Gateway) -> None:
    held = descriptors(pids(gate)["front 1"])
    assert [held.pop(number) for number in (0, 1, 2)] == ["/dev/null", str(gate.log), str(gate.log)]
    files = {what.removeprefix(f"{gate.state}/") for what in held.values() if what.startswith("/")}
    names = {"", "-wal", "-shm", ".next", ".turn"}
    assert files <= {f"{store}.sqlite3{name}" for store in ("store", "ledger") for name in names}
    others = [what for what in held.values() if not what.startswith(("/", "socket:"))]
    assert others == ["anon_inode:[eventpoll]"]


@only_root
def test_the_supervisor_holds_sockets_and_its_lock_and_neither_store_nor_key(gate: Gateway) -> None:
    held = descriptors(gate.process.pid)
    files = [what for number, what in held.items() if number > 2 and what.startswith("/")]
    inherited = str(gate.log.with_name("inherited"))
    assert sorted(files) == sorted([inherited, str(gate.state / "gateway.lock")])


@only_root
def test_what_the_supervisor_inherited_reaches_no_child(gate: Gateway) -> None:
    assert holds_text(gate.process.pid, CANARY.encode())
    inherited = str(gate.log.with_name("inherited"))
    for pid, name in family(gate.process.pid).items():
        assert inherited not in descriptors(pid).values(), name
        assert CANARY.encode() not in Path(f"/proc/{pid}/environ").read_bytes(), name
        assert not holds_text(pid, CANARY.encode()), name


@only_root
def test_keys_are_in_the_front_and_nowhere_else(gate: Gateway) -> None:
    """What a signing key's file says is in the memory of no process but the one that signs."""
    body = (gate.state / "keys" / "lease.pem").read_text().split("-----")[2].strip().split("\n")[0].encode()
    operator = (gate.state / "operator.key").read_text().strip().encode()
    for pid, name in family(gate.process.pid).items():
        if "front" not in name:
            assert not holds_text(pid, body), name
            assert not holds_text(pid, operator), name


@only_root
def test_a_secret_is_in_no_process_that_did_not_use_it(gate: Gateway) -> None:
    secret = (gate.state / "secrets.json").read_text().split('"upstream_token": "')[1].split('"')[0].encode()
    for pid, name in family(gate.process.pid).items():
        if "front" not in name and "worker http" not in name:
            assert not holds_text(pid, secret), name


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_can_leave_no_core_and_gain_no_right(gate: Gateway, name: str) -> None:
    pid = pids(gate)[name]
    found = limits(pid)
    assert found["Max core file size"] == ("0", "0")
    assert int(found["Max open files"][1]) <= 32
    assert int(found["Max data size"][1]) < 2 << 30
    if not IS_ROOT:
        assert found["Max processes"] == ("0", "0")
    assert status(pid, "NoNewPrivs") == "1"


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


# ------------------------------------------------------------------------------------------------ dying together


@pytest.fixture(scope="module")
def doomed(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with small pools, whose processes are killed; the last test that has it kills it as a whole."""
    folder: Path = tmp_path_factory.mktemp("doomed")
    config = patient(folder / "actions", spin=ENDLESS) + "[limits]\nworker_wait_seconds = 300\n"
    config += "[workers]\nidle_seconds = 0.3\nhttp = {min_spare = 1, max = 3}\n"
    with gateway(folder, config_for(up.address, config)) as running:
        yield running


def test_a_pool_grows_with_demand_and_shrinks_again(doomed: Gateway, up: Upstream) -> None:
    agent = doomed.agent()
    calls = [HeldCall(up, agent) for _ in range(3)]
    more = [Background(lambda: agent.execute("http_fetch", {"path": "x"})) for _ in range(2)]
    wait_for(lambda: in_flight(doomed) == 5, "five calls in flight")
    assert len(doomed.children("worker http")) == 3
    assert {call.release().status() for call in calls} | {call.status() for call in more} == {200}
    wait_for(lambda: len(doomed.children("worker http")) == 1, "one worker again")


def test_workers_die_with_their_template_and_policy_and_workers_with_their_front(doomed: Gateway) -> None:
    before = pids(doomed)
    os.kill(before["template"], signal.SIGKILL)
    all_gone({pid: name for name, pid in before.items() if name.startswith("worker")})
    wait_for(lambda: len(doomed.children("worker")) >= 3, "new workers")
    assert is_running(before["front 1"])
    again = pids(doomed)
    os.kill(again["front 1"], signal.SIGKILL)
    all_gone({pid: name for name, pid in again.items() if name.startswith(("worker", "policy"))})
    assert is_running(again["template"])
    agent = wait_for(lambda: _agent(doomed), "the next front")
    wait_for(lambda: agent.execute("text_digest", {"text": "x"}).status_code == 200, "its service")


def _agent(gate: Gateway) -> Bearer | None:
    try:
        return gate.agent()
    except httpx.TransportError:
        return None


def test_nothing_survives_a_supervisor_killed_in_the_middle_of_calls(doomed: Gateway) -> None:
    agent = doomed.agent()
    calls = [Background(lambda: agent.execute("spin", SPIN)) for _ in range(3)]
    wait_for(lambda: in_flight(doomed) == 3, "three calls in flight")
    wait_for(lambda: len(doomed.children("worker compute")) >= 3, "three workers")
    known = family(doomed.process.pid)
    doomed.process.kill()
    doomed.process.wait(STOP_SECONDS)
    all_gone(known)
    assert [call.status() for call in calls] == [0, 0, 0]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_nothing_survives_a_supervisor_killed_while_it_starts(tmp_path: Path, count: int) -> None:
    process = launched(tmp_path)
    known: dict[int, str] = {}

    def has_children() -> bool:
        known.update(family(process.pid))
        return len(family(process.pid)) >= count

    try:
        wait_for(has_children, f"{count} children", START_SECONDS)
    finally:
        known.update(family(process.pid))
        process.kill()
        process.wait(STOP_SECONDS)
    all_gone(known)


# ------------------------------------------------------------------------------------------------ signals


def test_a_second_interrupt_and_a_hard_deadline_cut_calls_and_the_exit_code_says_so(tmp_path: Path) -> None:
    top = patient(tmp_path / "actions", spin=ENDLESS)
    with gateway(tmp_path, f"{top}[limits]\ndrain_seconds = 3600\n") as gate:
        agent = gate.agent()
        call = Background(lambda: agent.execute("spin", SPIN))
        wait_for(lambda: in_flight(gate) == 1, "a call in flight")
        known = family(gate.process.pid)
        gate.process.send_signal(signal.SIGINT)
        wait_for(lambda: '"draining"' in gate.log.read_text(), "the drain")
        assert gate.stop(signal.SIGINT) == 137
        assert call.status() == 0
        all_gone(known)
        assert not os.path.exists(gate.ready["client_socket"])
        assert not os.path.exists(gate.ready["admin_socket"])
    with gateway(tmp_path, f"{top}[limits]\ndrain_seconds = 0.5\n") as gate:  # the lock is free, and what was cut shows
        assert gate.operator().get("/v1/admin/status").json()["unresolved_intents"] == 1
        agent = gate.agent()
        call = Background(lambda: agent.execute("spin", SPIN))
        wait_for(lambda: in_flight(gate) == 1, "a call in flight")
        known = family(gate.process.pid)
        assert gate.stop(signal.SIGTERM) == 137
        assert call.status() == 0
        all_gone(known)


def test_an_interrupt_from_a_terminal_reaches_the_supervisor_alone_and_calls_end_well(
    tmp_path: Path, up: Upstream
) -> None:
    config = f"{patient(tmp_path / 'actions')}[limits]\ndrain_seconds = 120\n"
    with started(tmp_path, config_for(up.address, config)) as gate:
        call = HeldCall(up, gate.agent())
        os.killpg(gate.process.pid, signal.SIGINT)
        wait_for(lambda: '"draining"' in gate.log.read_text(), "the drain")
        assert call.release().status() == 200
        assert gate.process.wait(STOP_SECONDS) == 0


# ------------------------------------------------------------------------------------------------ refusals to start


def refused(done: Any, code: int, *words: str) -> None:
    said = sentences(done)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert len(said) == 1, said
    assert said[0].startswith("gateway: ")
    assert all(word in said[0] for word in words), said[0]
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_one_sentence_and_nothing_is_left(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = attempt("dev", "--listen", address, "--state-dir", str(tmp_path / "state"))
    refused(done, 69, address, "in use")
    assert not (tmp_path / "state").exists()


def test_an_address_of_another_machine_is_one_sentence(tmp_path: Path) -> None:
    done = attempt("dev", "--listen", "192.0.2.1:0", "--state-dir", str(tmp_path / "state"))
    refused(done, 69, "192.0.2.1")
    assert not (tmp_path / "state").exists()


def test_a_state_directory_that_another_gateway_holds_is_one_sentence(gate: Gateway) -> None:
    before = set(os.listdir(gate.state))
    done = attempt("dev", "--listen", "127.0.0.1:0", "--state-dir", str(gate.state))
    refused(done, 75, str(gate.state), str(gate.process.pid))
    assert set(os.listdir(gate.state)) == before
    assert gate.http.get("/readyz").json()["status"] == "ready"
    with gate.over("client_socket") as client:
        assert client.get("/healthz").status_code == 200


def test_a_state_directory_that_can_not_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "state", Path("/proc/state")):
        refused(attempt("dev", "--listen", "127.0.0.1:0", "--state-dir", str(path)), 77, str(path))
    assert os.listdir(tmp_path) == ["file"]


def test_a_state_directory_of_somebody_else_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir()
    if IS_ROOT:
        os.chown(path, NOBODYS_GROUP, NOBODYS_GROUP)
    else:
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    refused(attempt("dev", "--listen", "127.0.0.1:0", "--state-dir", str(path)), 77, str(path))
    assert os.listdir(path) == []


def test_a_ready_file_that_can_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    arguments = ("dev", "--listen", "127.0.0.1:0", "--state-dir", str(tmp_path / "state"))
    done = attempt(*arguments, "--ready-file", str(tmp_path / "nowhere" / "ready.json"))
    refused(done, 77, "ready.json")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("name", "code", "word"),
    [("actions/spin.yaml", 78, "spin.yaml"), ("policy/gateway.rego", 78, "gateway.rego")],
    ids=["manifest", "policy"],
)
def test_a_configuration_that_will_not_do_is_said_before_anything_serves(
    tmp_path: Path, name: str, code: int, word: str
) -> None:
    all_examples(tmp_path / "actions")
    open_policy(tmp_path / "policy")
    with (tmp_path / name).open("a") as file:
        file.write("\n}:{ broken\n")
    config = f'manifests_dir = "{tmp_path / "actions"}"\npolicy_dir = "{tmp_path / "policy"}"\n'
    (tmp_path / "gateway.toml").write_text(config)
    done = attempt(
        "dev", "--listen", "127.0.0.1:0", "--state-dir", str(tmp_path / "state"), "--config",
        str(tmp_path / "gateway.toml"),
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert word in done.stderr
    assert os.listdir(tmp_path / "state" / "run") == []


@pytest.mark.parametrize("store", ["store", "ledger"])
def test_a_store_that_is_none_is_said_before_anything_serves(tmp_path: Path, store: str) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / f"{store}.sqlite3").write_bytes(b"this is no database" * 1000)
    done = attempt("dev", "--listen", "127.0.0.1:0", "--state-dir", str(tmp_path / "state"))
    assert done.returncode == 69, done.stderr
    assert done.stdout == ""
    assert f"{store}.sqlite3" in done.stderr


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


# ------------------------------------------------------------------------------------------------ pools


def served_by(gate: Gateway) -> int:
    """The highest number that a compute worker has had so far."""
    names = [title(process.pid) for process in gate.children("worker compute")]
    return max((int(name.rsplit(" ", 1)[1]) for name in names), default=0)


@pytest.fixture(scope="module")
def recycling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with one compute worker at a time, and two actions that take a fresh one for every call."""
    folder: Path = tmp_path_factory.mktemp("recycling")
    top = patient(folder / "actions", spin={"isolation": "process"})
    write_manifests(folder / "actions", example("text_digest", action_id="alone", isolation="process", **PATIENT))
    config = f'{top}policy_dir = "{open_policy(folder / "policy", "alone")}"\n[limits]\nworker_wait_seconds = 300\n'
    config += "[workers]\nrecycle_after_calls = 3\ncompute = {min_spare = 1, max = 1}\n"
    with gateway(folder, config) as running:
        yield running


def test_a_worker_is_replaced_after_its_share_of_calls_and_no_call_notices(recycling: Gateway) -> None:
    agent, before = recycling.agent(), served_by(recycling)
    for number in range(12):
        answer = agent.execute("text_digest", {"text": str(number)})
        assert answer.status_code == 200, answer.text
    wait_for(lambda: served_by(recycling) == before + 4, "the fourth worker after that")
    assert "SIGKILL" not in recycling.log.read_text()


def test_an_isolated_action_gets_a_fresh_worker_for_every_call(recycling: Gateway) -> None:
    agent = recycling.agent()
    before = wait_for(lambda: served_by(recycling), "a worker")
    for number in range(5):
        assert agent.execute("alone", {"text": str(number)}).status_code == 200
    wait_for(lambda: served_by(recycling) >= before + 5, "the fifth worker after that")
    calls = [Background(lambda: agent.execute("spin", {"seconds": 0.1})) for _ in range(4)]
    assert {call.status() for call in calls} == {200}
    assert len(recycling.children("worker compute")) <= 2
