"""`gateway dev`: what it makes, what it prints, what it refuses, what it leaves behind."""

import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ipc.process.exits import Exit
from supervisor.dev.settings import default_state_dir
from supervisor.dev.start import command_to_try
from supervisor.programs import INTERPRETER
from tests.support.readable import readable
from tests.support.supervised import wait_until

RUN_CLI = (*INTERPRETER, "tests.supervisor.programs.run_cli")
KEYS = {"event", "base_url", "public_base_url", "pid", "state_dir", "client_socket", "admin_socket", "operator"}


class Dev:
    """One `gateway dev` over fake children."""

    def __init__(self, folder: Path, *arguments: str, **environ: str) -> None:
        self.log = folder / "dev.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*RUN_CLI, "dev", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=log, text=True, cwd=folder, env=os.environ | environ,
            )  # fmt: skip

    def ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        ready: dict[str, Any] = json.loads(line)
        return ready

    def end(self) -> int:
        """Wait for the end; nothing may have been printed since."""
        assert self.process.stdout is not None
        assert self.process.stdout.read() == ""
        return self.process.wait(120)

    def stop(self) -> int:
        self.process.terminate()
        return self.end()


@pytest.fixture
def devs() -> Iterator[list[Dev]]:
    """The gateways in this list are stopped at the end."""
    started: list[Dev] = []
    yield started
    for one in started:
        one.process.kill()
        one.process.wait(60)
        assert one.process.stdout is not None
        one.process.stdout.close()


def begin(devs: list[Dev], folder: Path, *arguments: str, **environ: str) -> Dev:
    """Start one; of a flag that is given twice the last counts."""
    devs.append(Dev(folder, "--listen", "127.0.0.1:0", "--state-dir", "state", *arguments, **environ))
    return devs[-1]


def ask(family: socket.AddressFamily, address: Any) -> dict[str, Any]:
    with socket.socket(family) as sock:
        sock.settimeout(60)
        sock.connect(address)
        sock.sendall(b'{"do": "state"}\n')
        answer: dict[str, Any] = json.loads(sock.makefile().readline())
        return answer


def files_below(folder: Path) -> dict[str, int]:
    return {
        str(one.relative_to(folder)): stat.S_IMODE(one.lstat().st_mode)
        for one in folder.rglob("*")
        if one.is_file() and not any(part.startswith("modules-cache") for part in one.parts)
    }


def test_a_first_start_makes_all_and_says_it_in_a_line_a_second_keeps_all_and_a_third_is_refused_beside_it(
    devs: list[Dev], tmp_path: Path
) -> None:
    gateway = begin(devs, tmp_path, "--ready-file", "ready.json")
    ready = gateway.ready()
    state = tmp_path / "state"
    assert set(ready) == KEYS
    assert next(iter(ready)) == "event"
    assert ready["event"] == "ready"
    assert ready["pid"] == gateway.process.pid
    assert ready["base_url"] == ready["public_base_url"]
    assert ready["state_dir"] == str(state)
    assert json.loads((tmp_path / "ready.json").read_text()) == ready
    operator = ready["operator"]
    assert set(operator) == {"name", "key", "key_file", "private_key_file"}
    assert operator["name"] == "dev"
    assert operator["key"].startswith("key-dev-")
    assert len(operator["key"]) == len("key-dev-") + 32
    assert Path(operator["private_key_file"]).read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert files_below(state) == dict.fromkeys(
        [
            "gateway.lock", "in-force.json", "running.json", "operator.key", "operator.pem", "secrets.json",
            "receipt-keys.jwks.json", "checkpoint-keys.jwks.json", "keys/lease.pem", "keys/grant.pem",
            "keys/receipt.pem", "keys/checkpoint.pem", "policy/data.json", "policy/gateway.rego",
        ],
        0o600,
    )  # fmt: skip
    assert set(json.loads((state / "secrets.json").read_text())) == {"upstream_token", "bank_token"}
    assert (state / "files").is_dir()
    host, port = ready["base_url"].removeprefix("http://").split(":")
    answers = [
        ask(socket.AF_INET, (host, int(port))),
        ask(socket.AF_UNIX, ready["client_socket"]),
        ask(socket.AF_UNIX, ready["admin_socket"]),
    ]
    assert len({answer["pid"] for answer in answers}) == 1
    assert [kind for kind, _ in answers[0]["listeners"]] == ["merged", "client", "admin"]
    weakened = ["dev_mode", "identity.provider=none", "unsafe_expose_http", "egress.unsafe_resolve"]
    assert answers[0]["weakened"] == weakened
    assert "this configuration weakens the gateway" in gateway.log.read_text()
    assert gateway.stop() == Exit.OK
    assert not (tmp_path / "ready.json").exists()
    assert not (state / "running.json").exists()
    assert not list((state / "run").iterdir())

    kept = {name: (state / name).read_bytes() for name in files_below(state)}
    second = begin(devs, tmp_path)
    assert second.ready()["operator"] == operator
    again = {name: (state / name).read_bytes() for name in kept if name != "gateway.lock"}
    assert again == {name: kept[name] for name in again}

    (tmp_path / "second").mkdir()
    third = begin(devs, tmp_path / "second", "--state-dir", str(state))
    assert third.end() == Exit.LOCKED
    held = f"gateway: state directory {state} is held by another gateway (pid {second.process.pid}).\n"
    assert third.log.read_text() == held
    assert second.stop() == Exit.OK


def test_a_configuration_file_overrides_what_dev_mode_would_choose(devs: list[Dev], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine.toml").write_text(
        'policy_dir = "mine"\n'
        'public_base_url = "https://gate.example"\nlisten_uds_path = "mine.sock"\n'
        '[identity]\nprovider = "peercred"\n[egress]\nunsafe_resolve = {"upstream.gateway.test" = "127.0.0.1:9"}\n'
    )
    gateway = begin(devs, tmp_path, "--config", "mine.toml", GATEWAY__LIMITS__DRAIN_SECONDS="3")
    ready = gateway.ready()
    assert ready["public_base_url"] == "https://gate.example"
    assert ready["base_url"].startswith("http://127.0.0.1:")
    assert ready["client_socket"] == str(tmp_path / "mine.sock")
    weakened = ask(socket.AF_UNIX, ready["client_socket"])["weakened"]
    assert weakened == ["dev_mode", "unsafe_expose_http", "egress.unsafe_resolve"]
    assert gateway.stop() == Exit.OK
    assert not (tmp_path / "state" / "policy").exists()
    assert not list((tmp_path / "mine").iterdir()), "a policy folder that is named is used as it lies"


def test_problems_of_the_configuration_are_printed_and_nothing_is_made(devs: list[Dev], tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        f'unsafe_expose_http = false\n[[operators]]\nname = "dev"\napi_key_sha256 = "{"0" * 64}"\n'
    )
    gateway = begin(devs, tmp_path, "--config", "mine.toml")
    assert gateway.end() == Exit.CONFIG
    assert gateway.log.read_text() == (
        "mine.toml:1  unsafe_expose_http = false: gateway dev always listens on TCP. Remove it.\n"
        'mine.toml:2  operators: the name "dev" is that of the operator that gateway dev makes. Choose another.\n'
        "2 problems, nothing started.\n"
    )
    assert not (tmp_path / "state").exists()


def test_a_wrong_flag_is_a_problem_like_any_other(devs: list[Dev], tmp_path: Path) -> None:
    gateway = begin(devs, tmp_path, "--listen", "gate.example:80")
    assert gateway.end() == Exit.CONFIG
    assert gateway.log.read_text().startswith('--listen  listen_http_addr = "gate.example:80": must be an IP address')


def test_a_port_in_use_names_a_free_one_and_leaves_nothing_behind(devs: list[Dev], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        gateway = begin(devs, tmp_path, "--listen", address, "--state-dir", "state/deep")
        assert gateway.end() == Exit.UNAVAILABLE
    said = f"gateway: {address} is in use by another program; try --listen 127.0.0.1:(\\d+), which is free.\n"
    assert re.fullmatch(said, gateway.log.read_text())
    assert sorted(one.name for one in tmp_path.iterdir()) == ["dev.log"]


def test_a_state_directory_that_can_not_be_made_is_one_sentence(devs: list[Dev], tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    gateway = begin(devs, tmp_path, "--state-dir", "state/deep")
    assert gateway.end() == Exit.NO_PERMISSION
    said = f"gateway: state directory {tmp_path / 'state/deep'} can't be made: Not a directory.\n"
    assert gateway.log.read_text() == said


def test_a_ready_file_that_can_not_be_written_is_said_before_anything_starts(devs: list[Dev], tmp_path: Path) -> None:
    gateway = begin(devs, tmp_path, "--ready-file", "missing/ready.json")
    assert gateway.end() == Exit.NO_PERMISSION
    assert (
        gateway.log.read_text()
        == "gateway: ready file missing/ready.json can't be written: No such file or directory.\n"
    )


def test_an_interrupted_start_leaves_no_socket_no_process_and_no_earlier_ready_file(
    devs: list[Dev], tmp_path: Path
) -> None:
    file = tmp_path / "ready.json"
    file.write_text("{}")
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "fake-front.json").write_text('{"never_ready": true}')
    gateway = begin(devs, tmp_path, "--ready-file", "ready.json")
    wait_until(lambda: not file.exists())
    wait_until(lambda: (tmp_path / "state" / "run" / "gate.sock").exists())
    gateway.process.send_signal(signal.SIGINT)
    assert gateway.end() == Exit.OK
    assert not list((tmp_path / "state" / "run").iterdir())


def test_sockets_of_a_very_deep_state_directory_lie_in_a_short_one(devs: list[Dev], tmp_path: Path) -> None:
    """A runtime folder of pytest's own would be a long one itself where there were many runs before."""
    deep = tmp_path.joinpath(*["d" * 30] * 4)
    with TemporaryDirectory() as folder:
        runtime = Path(folder)
        gateway = begin(devs, tmp_path, "--state-dir", str(deep), XDG_RUNTIME_DIR=folder)
        ready = gateway.ready()
        assert ready["client_socket"].startswith(f"{runtime}/gateway-dev-")
        assert ask(socket.AF_UNIX, ready["client_socket"])["pid"]
        assert gateway.stop() == Exit.OK
        assert not list(runtime.iterdir())


def test_a_closed_standard_output_does_not_keep_it_from_serving(devs: list[Dev], tmp_path: Path) -> None:
    gateway = begin(devs, tmp_path, "--ready-file", "ready.json")
    assert gateway.process.stdout is not None
    gateway.process.stdout.close()
    wait_until(lambda: (tmp_path / "ready.json").exists())
    ready = json.loads((tmp_path / "ready.json").read_text())
    assert ask(socket.AF_UNIX, ready["client_socket"])["pid"]
    gateway.process.terminate()
    assert gateway.process.wait(120) == Exit.OK


@pytest.mark.parametrize("stdout", ["a terminal", "a pipe"])
def test_a_terminal_gets_lines_for_people_and_never_the_key(tmp_path: Path, stdout: str) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*RUN_CLI, "dev", "--listen", "127.0.0.1:0", "--state-dir", "state", "--ready-file", "ready.json"],
        stdin=subprocess.DEVNULL, stdout=theirs if stdout == "a terminal" else subprocess.PIPE, stderr=theirs,
        cwd=tmp_path,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while b"/v1/actions" not in seen and readable(ours, 120):
            seen += os.read(ours, 4096)
        ready = json.loads((tmp_path / "ready.json").read_text())
        if process.stdout is not None:
            assert json.loads(process.stdout.readline()) == ready
    finally:
        process.terminate()
        process.wait(120)
        if process.stdout is not None:
            process.stdout.close()
        os.close(ours)
    text = seen.decode().replace("\r\n", "\n")
    told = text[text.index("gateway dev serves") :]
    assert told.startswith(f"gateway dev serves {ready['base_url']}\n")
    assert f"  operator  dev: key in {ready['operator']['key_file']}\n" in told
    assert "  WEAKENED  never for production: dev_mode, identity.provider=none,\n" in told
    assert f"GATECTL_DEV_STATE_DIR={ready['state_dir']} gatectl execute text_digest text=hello\n" in told
    assert ready["operator"]["key"] not in text
    assert '"event"' not in text


def test_the_command_to_try_names_an_action_that_is_registered(tmp_path: Path) -> None:
    assert command_to_try(tmp_path) == command_to_try(tmp_path / "none") == "gatectl actions list"
    (tmp_path / "b.yaml").write_text("# one\naction_id: mail.send\nversion: 1.0.0\n")
    assert command_to_try(tmp_path) == "gatectl actions show mail.send"
    (tmp_path / "c.yml").write_text('version: 1.0.0\naction_id: "text_digest"\n')
    assert command_to_try(tmp_path) == "gatectl execute text_digest text=hello"


def test_the_state_directory_follows_the_conventions_of_the_desktop() -> None:
    assert default_state_dir({"XDG_STATE_HOME": "/x/state", "HOME": "/h"}) == Path("/x/state/gateway-dev")
    assert default_state_dir({"XDG_STATE_HOME": "relative", "HOME": "/h"}) == Path("/h/.local/state/gateway-dev")
    assert default_state_dir({}).name == "gateway-dev"
