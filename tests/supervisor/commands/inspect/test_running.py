"""`gateway status|ps|reload|drain` against a running supervisor, and where none runs; SIGUSR1 tells the same."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipc.process.exits import Exit
from supervisor.cli import main
from supervisor.life.asking import NAME
from tests.support import processes
from tests.support.supervised import Running, Start, wait_until


def said(capsys: pytest.CaptureFixture[str], folder: str | Path, *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    code = main([*words, "--state-dir", str(folder)])
    out = capsys.readouterr()
    return code, out.out, out.err


def told(capsys: pytest.CaptureFixture[str], gateway: Running, *words: str) -> tuple[int, dict[str, Any]]:
    """The same as JSON."""
    code, out, _ = said(capsys, gateway.settings.state_dir, *words, "--json")
    return code, json.loads(out)


def test_status_and_ps_tell_what_runs(gateway: Running, capsys: pytest.CaptureFixture[str]) -> None:
    gateway.ask(do="busy", in_flight=3)
    code, status = told(capsys, gateway, "status")
    assert (code, status["state"], status["in_flight"], status["crash_loops"]) == (Exit.OK, "serving", 3, [])
    assert status["pid"] == gateway.process.pid
    code, ps = told(capsys, gateway, "ps")
    assert code == Exit.OK
    assert {one["name"]: one["pid"] for one in ps["processes"]} == gateway.whole_family()
    front = next(one for one in ps["processes"] if one["name"] == "front 1")
    assert (front["state"], front["in_flight"]) == ("serving", 3)
    code, out, _ = said(capsys, gateway.settings.state_dir, "ps")
    assert all(name in out for name in gateway.whole_family())
    code, out, _ = said(capsys, gateway.settings.state_dir, "status")
    assert out.startswith("serving · 1 actions · 0 held · 3 in flight · 0 unresolved\n")
    gateway.ask(do="busy", in_flight=0)


def test_a_full_ledger_is_reported_and_not_ready(gateway: Running, capsys: pytest.CaptureFixture[str]) -> None:
    for is_full, exit_code in ((True, Exit.FAILED), (False, Exit.OK)):
        gateway.ask(do="busy", in_flight=0, is_ledger_full=is_full)
        code, status = told(capsys, gateway, "status")
        assert (code, status["is_ledger_full"], status["is_ready"]) == (exit_code, is_full, not is_full)
        _, out, _ = said(capsys, gateway.settings.state_dir, "status")
        told_full = "\nnot ready: ledger full, calls are refused; make room on its volume: docs/runbooks/full-disk.md"
        assert (told_full in out) == is_full


def test_a_policy_engine_that_is_down_is_named_with_where_to_read_on(
    gateway: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    told_down = (
        "\nnot ready: the policy engine does not answer, calls are refused; the log and docs/failure-modes.md say"
    )
    for is_up, exit_code in ((False, Exit.FAILED), (True, Exit.OK)):
        gateway.ask(do="busy", in_flight=0, dependencies={"opa": is_up})
        code, status = told(capsys, gateway, "status")
        assert (code, status["down"]) == (exit_code, [] if is_up else ["opa"])
        _, out, _ = said(capsys, gateway.settings.state_dir, "status")
        assert (told_down in out) == (not is_up)


def test_ps_tells_the_last_error_of_what_ended(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    gateway = start()
    os.kill(gateway.whole_family()["notary"], signal.SIGKILL)
    wait_until(lambda: gateway.told("notary ended"))
    _, ps = told(capsys, gateway, "ps")
    notary = next(one for one in ps["processes"] if one["name"] == "notary")
    assert (notary["ends"], notary["last_error"]) == (1, "SIGKILL")


def test_usr1_tells_of_each_child_and_ends_nothing(gateway: Running, capsys: pytest.CaptureFixture[str]) -> None:
    gateway.ask(do="busy", in_flight=2)
    wait_until(lambda: told(capsys, gateway, "status")[1]["in_flight"] == 2)  # a signal may overtake what a front says
    family = gateway.whole_family()
    gateway.signal(signal.SIGUSR1)
    wait_until(lambda: len(gateway.told("child")) == len(family))
    assert {row["name"]: row["pid"] for row in gateway.told("child")} == family
    assert gateway.told("the gateway")[0]["in_flight"] == 2
    assert gateway.whole_family(len(family)) == family
    gateway.ask(do="busy", in_flight=0)


def ignores(pid: int, number: signal.Signals) -> bool:
    return bool(int(processes.status(pid, "SigIgn"), 16) & 1 << (number - 1))


def test_signals_to_the_whole_service_are_the_supervisors_alone(start: Start) -> None:
    gateway = start(is_real=True)
    family = gateway.whole_family()
    for number in (signal.SIGUSR1, signal.SIGHUP):
        for name in ("policy 1", "template", "worker http 1"):
            # A policy process has its title a moment before it ignores anything, and readiness does not wait for it.
            wait_until(lambda: ignores(family[name], number))  # noqa: B023
            os.kill(family[name], number)
    gateway.signal(signal.SIGUSR1)
    wait_until(lambda: gateway.told("the gateway"))
    assert gateway.whole_family(len(family)) == family


def test_a_reload_is_answered_with_what_came_of_it(gateway: Running, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = told(capsys, gateway, "reload")
    assert (code, answer["error"], answer["actions"], answer["policy_version"]) == (Exit.OK, None, 7, "v1")
    assert gateway.state()["reloads"] == [["command-1", "command"]]
    gateway.ask(do="set", values={"reload_error": "a.yaml:3 is no action"})
    code, out, _ = said(capsys, gateway.settings.state_dir, "reload")
    gateway.ask(do="set", values={"reload_error": None})
    assert code == Exit.FAILED
    assert "a.yaml:3 is no action" in out


def test_a_drain_refuses_work_and_waits_for_the_last_call_if_asked_to(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = start()
    gateway.ask(do="busy", in_flight=1)
    command = [sys.executable, "-m", "supervisor.cli", "drain", "--wait", "--json", "--state-dir"]
    with subprocess.Popen(
        [*command, gateway.settings.state_dir], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4]
    ) as waiting:
        gateway.eventually(lambda state: state["drained"])
        assert waiting.poll() is None
        gateway.ask(do="busy", in_flight=0)
        assert waiting.stdout is not None
        answer = json.loads(waiting.stdout.read())
    assert (waiting.returncode, answer["state"], answer["in_flight"]) == (Exit.OK, "draining", 0)
    _, out, _ = said(capsys, gateway.settings.state_dir, "status")
    assert "\nnot ready: it refuses new calls and leases until it is restarted; a drain is not taken back\n" in out


def test_a_gateway_that_starts_or_fails_is_not_ready_by_its_exit_code(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = start(front={"never_ready": True}, waits=False)
    gateway.state()
    code, status = told(capsys, gateway, "status")
    assert (code, status["state"], status["is_ready"]) == (Exit.FAILED, "starting", False)


def test_a_gateway_is_asked_although_its_configuration_is_wrong_in_the_middle_of_an_edit(
    gateway: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.toml"
    operator = '[[operators]]\nnme = "ann"\n'
    file.write_text(f'public_base_url = "https://h"\nstate_dir = "{gateway.settings.state_dir}"\n{operator}')
    assert main(["status", "--config", str(file)]) == Exit.OK
    assert capsys.readouterr().out.startswith("serving · ")
    file.write_text(f'state_dir = "relative\n{operator}')
    assert main(["status", "--config", str(file)]) == Exit.CONFIG
    assert f"{file}:1  is not TOML" in (told := capsys.readouterr().err)
    assert told.endswith("1 problem, nothing was done.\n")
    assert main(["keys", "list", "--config", str(file)]) == Exit.CONFIG
    assert capsys.readouterr().err.endswith("1 problem, nothing was done.\n")


@pytest.mark.parametrize("word", ["status", "ps", "reload", "drain"])
def test_without_a_gateway_each_command_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        code, out, err = said(capsys, folder, word)
        assert (code, out) == (Exit.UNAVAILABLE, "")
        none = f"gateway: no gateway runs with the state directory {folder}."
        assert err == f"{none} Name another with --config FILE or --state-dir DIR.\n"


def test_the_socket_is_ours_alone_however_long_its_path_and_gone_at_the_end(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ("d" * 120)
    folder.mkdir(mode=0o700)
    gateway = start(state_dir=str(folder))
    path = folder / NAME
    assert path.stat().st_mode & 0o777 == 0o600
    assert told(capsys, gateway, "status")[0] == Exit.OK
    gateway.signal(signal.SIGTERM)
    gateway.wait()
    assert not path.exists()
    assert said(capsys, folder, "status")[0] == Exit.UNAVAILABLE


def test_a_killed_gateway_does_not_answer_and_its_successor_has_its_places_and_does(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    first = start()
    family = first.whole_family()
    first.process.kill()
    first.process.wait(60)
    assert said(capsys, first.settings.state_dir, "status")[0] == Exit.UNAVAILABLE
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}/fd") for pid in family.values()))
    assert os.path.exists(first.settings.listen_uds_path)
    second = start()
    assert second.state()["front_id"]
    assert told(capsys, second, "status")[1]["pid"] == second.process.pid


@pytest.mark.parametrize(
    "line", [b"\n", b"{}\n", b'{"do": 7}\n', b'{"do": "stop"}\n', b"[" * 5000 + b"\n", b"x" * 9000]
)
def test_noise_is_answered_and_changes_nothing(gateway: Running, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(str(Path(gateway.settings.state_dir) / NAME))
        sock.sendall(line)
        with sock.makefile("rb") as stream:
            assert json.loads(stream.readline()) == {"error": "no such command"}
    assert gateway.state()["front_id"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_other_users_are_refused_even_if_the_file_modes_allow_them(gateway: Running) -> None:
    path = Path(gateway.settings.state_dir) / NAME
    path.chmod(0o666)
    ask = """
import os, socket, sys
os.chdir(sys.argv[1]); os.setgid(65534); os.setuid(65534)
with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(60)
    sock.connect("control.sock")
    try:
        sock.sendall(b'{"do": "drain"}\\n')
        print(sock.recv(100))
    except ConnectionError:
        print(b"")
"""
    path.parent.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", ask, str(path.parent)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "b''\n", done.stderr
    path.chmod(0o600)
    path.parent.chmod(0o700)
    told = gateway.told("a command is refused: only the gateway's user and root may give one")
    assert len([one for one in told if one["uid"] == 65534]) == 1
    assert not gateway.state()["drained"]


def test_a_process_of_the_gateway_itself_is_not_heard(gateway: Running) -> None:
    path = str(Path(gateway.settings.state_dir) / NAME)
    refusal = "a command is refused: only the gateway's user and root may give one"
    before = len(gateway.told(refusal))
    assert gateway.ask(do="connect", path=path, line='{"do": "drain"}\n') == ""
    assert len(gateway.told(refusal)) == before + 1
    assert not gateway.state()["drained"]
