"""The walls around the processes of a running gateway, as the kernel tells them from outside."""

import json
import os
import pwd
import re
import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ipc.process.exits import Exit
from ipc.walls.found import missing_walls
from ipc.walls.privileges import KILL as CAP_KILL
from ipc.walls.privileges import SETGID, SETUID, User
from tests.support.gateway import Gateway, config_for
from tests.support.manifests import patient
from tests.support.processes import GATEWAY, limits, pids, started, status
from tests.support.production import PUBLIC_URL, make_keys
from tests.support.upstream import Upstream

IS_ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root may look into a process that is not dumpable")
COMPUTE, HTTP, FS = "worker compute 1", "worker http 1", "worker fs 1"
WORKERS = (COMPUTE, HTTP, FS)
CHILDREN = (*WORKERS, "policy 1", "template", "notary", "front 1")
NOBODY = pwd.getpwnam("nobody")


@pytest.fixture(scope="module", autouse=True)
def all_walls() -> None:
    """These tests say what there is on a machine that has every wall; the suite's own must."""
    missing = missing_walls(User(NOBODY.pw_uid, NOBODY.pw_gid) if IS_ROOT else None)
    if missing and os.environ.get("CI") != "true":
        pytest.skip(f"this machine lacks {', '.join(missing)}")
    assert not missing


@pytest.fixture(scope="module")
def gate(watched: Gateway) -> Gateway:
    """The gateway that is looked at from outside."""
    return watched


def own_namespaces(pid: int) -> set[str]:
    return {
        name for name in ("user", "net", "ipc", "mnt")
        if os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}")
    }  # fmt: skip


@pytest.mark.parametrize("name", CHILDREN)
def test_every_child_has_a_filter_and_can_gain_nothing(gate: Gateway, name: str) -> None:
    pid = pids(gate)[name]
    assert (status(pid, "Seccomp"), status(pid, "NoNewPrivs")) == ("2", "1")
    assert limits(pid)["Max core file size"] == ("0", "0")


@pytest.mark.parametrize("name", [name for name in CHILDREN if name != "template"])
def test_no_child_but_the_template_has_a_capability(gate: Gateway, name: str) -> None:
    pid = pids(gate)[name]
    capabilities = {one: int(status(pid, one), 16) for one in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert capabilities == dict.fromkeys(capabilities, 0)


@pytest.mark.parametrize("name", [*WORKERS, "policy 1"])
def test_those_that_run_what_others_wrote_have_no_capability_to_gain(gate: Gateway, name: str) -> None:
    assert int(status(pids(gate)[name], "CapBnd"), 16) == 0


@only_root
def test_the_template_of_root_keeps_what_makes_workers_others_and_ends_them(gate: Gateway) -> None:
    wanted = sum(1 << number for number in (SETUID, SETGID, CAP_KILL))
    assert int(status(pids(gate)["template"], "CapPrm"), 16) == wanted


@only_root
def test_workers_see_no_network_no_mounts_and_no_users_of_the_host(gate: Gateway) -> None:
    namespaces = {name: own_namespaces(pids(gate)[name]) for name in CHILDREN}
    apart = {"user", "ipc", "mnt"}
    assert namespaces == {
        COMPUTE: {*apart, "net"}, FS: {*apart, "net"}, HTTP: apart, "policy 1": {*apart, "net"},
        "notary": {"user", "ipc", "net"}, "front 1": set(), "template": set(),
    }  # fmt: skip


@only_root
def test_two_workers_share_no_namespace(gate: Gateway) -> None:
    known = pids(gate)
    assert os.readlink(f"/proc/{known[COMPUTE]}/ns/user") != os.readlink(f"/proc/{known[FS]}/ns/user")


@only_root
def test_what_needs_no_file_of_the_gateway_is_a_user_that_owns_none(gate: Gateway) -> None:
    known = pids(gate)
    for name in (COMPUTE, HTTP, "policy 1"):
        assert set(status(known[name], "Uid").split()) == {str(NOBODY.pw_uid)}
        assert set(status(known[name], "Gid").split()) == {str(NOBODY.pw_gid)}
        assert status(known[name], "Groups") == ""


@only_root
@pytest.mark.parametrize("name", [COMPUTE, "policy 1"])
def test_the_root_of_what_needs_no_file_is_an_empty_folder(gate: Gateway, name: str) -> None:
    assert os.listdir(f"/proc/{pids(gate)[name]}/root") == []


@only_root
@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_has_no_environment(gate: Gateway, name: str) -> None:
    assert not Path(f"/proc/{pids(gate)[name]}/environ").read_bytes().strip(b"\0")


def test_workers_are_ended_and_served_last(gate: Gateway) -> None:
    known = pids(gate)
    assert {Path(f"/proc/{known[name]}/oom_score_adj").read_text().strip() for name in WORKERS} == {"500"}
    assert {psutil.Process(known[name]).nice() for name in WORKERS} == {min(os.nice(0) + 15, 19)}


def test_a_worker_writes_no_file_and_starts_nothing_by_its_limits(gate: Gateway) -> None:
    known = pids(gate)
    assert {limits(known[name])["Max processes"] for name in WORKERS} == {("0", "0")}
    assert limits(known[COMPUTE])["Max open files"] == ("8", "8")
    assert [int(limits(known[name])["Max open files"][1]) <= most for name, most in ((HTTP, 128), (FS, 32))] == [
        True
    ] * 2
    assert {int(limits(known[name])["Max data size"][1]) < 2 << 30 for name in WORKERS} == {True}


def test_a_file_beyond_the_bound_of_a_worker_is_a_named_error_and_costs_no_worker(gate: Gateway) -> None:
    worker = pids(gate)[FS]
    before = resource.prlimit(worker, resource.RLIMIT_FSIZE)
    resource.prlimit(worker, resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        agent = gate.agent()
        answer = agent.execute("file_write", {"path": "large", "content": "x" * 10_000})
        assert answer.status_code == 502
        receipt = agent.get(f"/v1/receipts/{answer.headers['x-receipt-id']}").json()
        assert "too-large: the file system takes no file of that size" in json.dumps(receipt)
    finally:
        resource.prlimit(worker, resource.RLIMIT_FSIZE, before)
    assert pids(gate)[FS] == worker
    assert not (gate.state / "files" / "large").exists()
    assert gate.agent().execute("file_write", {"path": "small", "content": "x"}).status_code == 200


@pytest.mark.parametrize("name", WORKERS)
def test_every_thread_of_a_worker_is_behind_the_filter(gate: Gateway, name: str) -> None:
    threads = list(Path(f"/proc/{pids(gate)[name]}/task").iterdir())
    assert len(threads) > 1
    for thread in threads:
        text = (thread / "status").read_text()
        assert re.search(r"^Seccomp:\t2$", text, re.MULTILINE)
        assert re.search(r"^CapEff:\t0+$", text, re.MULTILINE)


def test_doctor_says_that_every_wall_stands() -> None:
    done = subprocess.run([GATEWAY, "doctor"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert "missing" not in done.stdout
    for name in ("worker compute", "worker http", "worker fs", "policy", "notary", "front", "template", "reader"):
        assert re.search(rf"^{name} +seccomp +ok$", done.stdout, re.MULTILINE)


def test_a_gateway_with_all_walls_says_nothing_of_a_degraded_sandbox(gate: Gateway) -> None:
    weakened = gate.operator().get("/v1/admin/status").json()["weakened"]
    assert not [name for name in weakened if "sandbox" in name]
    assert not [event for event in gate.events() if "sandbox_degraded" in event]


# ------------------------------------------------------------------------------------------------ less than all walls

WITHOUT_NAMESPACES = """#!{python}
import os, sys
sys.path.insert(0, {root!r})
from ipc.walls.calls import refuse
from ipc.walls.privileges import refuse_new_privileges
from ipc.walls.seccomp import compile_rules, install
refuse_new_privileges()
install(compile_rules(refuse("unshare", 1), is_list_of_refused=True))
os.execv({gateway!r}, [{gateway!r}, *sys.argv[1:]])
"""


@pytest.fixture(scope="module")
def poor_machine(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program that becomes the gateway on a machine that grants no namespaces, as container runtimes do."""
    program = tmp_path_factory.mktemp("poor") / "gateway"
    root = str(Path(__file__).resolve().parents[2])
    program.write_text(WITHOUT_NAMESPACES.format(python=sys.executable, root=root, gateway=GATEWAY))
    program.chmod(0o755)
    return str(program)


def test_a_dev_gateway_without_all_walls_serves_with_the_rest_and_every_event_says_so(
    poor_machine: str, up: Upstream, tmp_path: Path
) -> None:
    config = config_for(up.address, patient(tmp_path / "actions"))
    with started(tmp_path, config, program=poor_machine) as gate:
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
        weakened = gate.operator().get("/v1/admin/status").json()["weakened"]
        assert "sandbox without user namespace" in weakened
        events = gate.events()
        assert events
        assert [event["sandbox_degraded"] for event in events] == [True] * len(events)
        worker = pids(gate)[COMPUTE]
        assert (status(worker, "Seccomp"), int(status(worker, "CapPrm"), 16)) == ("2", 0)
    assert "processes serve without walls that this machine lacks" in gate.log.read_text()


def test_a_production_gateway_without_all_walls_does_not_start(poor_machine: str, tmp_path: Path) -> None:
    made = make_keys(tmp_path / "keys")
    file = tmp_path / "gateway.toml"
    file.write_text(
        made.settings + f'state_dir = "{tmp_path}/state"\npublic_base_url = "{PUBLIC_URL}"\n'
        f'listen_uds_path = "{tmp_path}/c"\nlisten_admin_uds_path = "{tmp_path}/a"\n' + made.operators
    )
    done = subprocess.run(
        [poor_machine, "run", "--config", str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == Exit.CONFIG, done.stderr
    assert "user namespace" in done.stderr
    assert "unsafe_degraded_sandbox" in done.stderr


def test_doctor_names_what_is_missing_and_the_mend(poor_machine: str) -> None:
    done = subprocess.run([poor_machine, "doctor", "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == Exit.FAILED, done.stderr
    rows = json.loads(done.stdout)["walls"]
    missing = [row for row in rows if row["found"] == "missing"]
    assert {row["wall"] for row in missing} >= {"user namespace", "network namespace", "empty root"}
    assert all(row["mend"] for row in missing)
