"""Real gateways and real witnesses: what is cosigned, what a ledger that was put back meets, what kills leave."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from gateway_client import verify_bundle

from ipc.process.exits import Exit
from supervisor.cli import main as cli
from tests.support.certificates import made_certificate
from tests.support.gateway import ANSWER_SECONDS, LOOK_AGAIN_SECONDS, Gateway, gateway, wait_for
from tests.support.logs_of_others import PlayedLog
from tests.support.witness_process import WitnessProcess, run, witness_process, witnessed_config

BASE = "http://gate.gateway.test"


def checkpoint(gate: Gateway) -> dict[str, Any]:
    """The last one, as status shows it while the notary answers in time."""
    last: dict[str, Any] = wait_for(
        lambda: gate.operator().get("/v1/admin/status").json()["checkpoint"], "a checkpoint in status"
    )
    return last


def city(gate: Gateway) -> dict[str, Any]:
    witness: dict[str, Any] = checkpoint(gate)["witnesses"][0]
    return witness


def until_cosigned(gate: Gateway) -> int:
    """Wait until all that is there by now is cosigned, and nothing is wrong; how much that is."""
    size = int(gate.operator().get("/v1/audit/checkpoint").json()["size"])
    wait_for(lambda: city(gate)["size"] == size and city(gate)["problem"] is None, "a cosignature")
    return size


def know(witness: WitnessProcess, gate: Gateway) -> None:
    """Tell the witness of the gateway's log."""
    keys = gate.operator().get("/v1/audit/checkpoint").json()["keys"]
    witness.log_keys.write_text("# of the gateway\n" + "\n".join(keys) + "\n")


def config(witness: WitnessProcess) -> str:
    return witnessed_config(witness, f'public_base_url = "{BASE}"\nfront_processes = 2')


@dataclass
class Witnessed:
    """A gateway, its witness, and what status said of the witness before it was there."""

    gate: Gateway
    witness: WitnessProcess
    at_first: dict[str, Any]


@pytest.fixture(scope="module")
def witnessed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witnessed]:
    """The gateway has two fronts: status and metrics say the same whichever answers."""
    folder: Path = tmp_path_factory.mktemp("witnessed")
    with witness_process(folder / "w") as witness, gateway(folder, config(witness)) as gate:
        know(witness, gate)
        wait_for(lambda: city(gate)["problem"] is not None, "its absence in status")
        at_first = city(gate)
        witness.start()
        until_cosigned(gate)
        yield Witnessed(gate, witness, at_first)


def test_a_witness_that_comes_late_goes_away_and_comes_back_catches_up(witnessed: Witnessed) -> None:
    gate, witness = witnessed.gate, witnessed.witness
    assert witnessed.at_first["problem"] == "no connection could be made"
    assert witness.stop() == Exit.OK
    agent = gate.agent()
    for number in range(3):
        assert agent.execute("text_digest", {"text": str(number)}).status_code == 200
    wait_for(lambda: city(gate)["problem"] is not None, "its absence in status")
    behind = city(gate)
    assert behind["has_cosigned"] is False
    witness.start()
    until_cosigned(gate)
    assert city(gate)["size"] > behind["size"]
    shown = gate.operator().get("/v1/audit/checkpoint").json()
    assert shown["checkpoint"].count("\N{EM DASH} ") == 2
    event = gate.events(event_type="ActionCall")[0]
    bundle = gate.operator().get(f"/v1/audit/proof?event_id={event['event_id']}")
    call = verify_bundle(bundle.content, origin_keys=shown["keys"][0], witness_keys=[witness.key]).call
    assert call is not None
    assert any("witness.example/w" in name for name in call.witnesses)
    lines = (gate.state / "checkpoints").read_text().splitlines()
    assert json.loads(lines[-1])["note"] == shown["checkpoint"]
    metrics = gate.operator().get("/metrics").text
    assert 'gate_witness_requests_total{outcome="cosigned",witness="city"}' in metrics
    assert 'gate_witness_lag_seconds{witness="city"} 0.0' in metrics
    assert f"gate_checkpoint_entries {float(shown['size'])}" in metrics


def test_a_ledger_that_was_put_back_with_all_its_files_is_refused_by_the_witness(
    witnessed: Witnessed, tmp_path: Path
) -> None:
    """The gateway itself can't know: its own file of checkpoints was put back, too."""
    gate, witness = witnessed.gate, witnessed.witness
    until_cosigned(gate)
    copy_of_state(gate, tmp_path / "state")
    agent = gate.agent()
    for number in range(5):
        agent.execute("text_digest", {"text": str(number)})
    size = until_cosigned(gate)
    with gateway(tmp_path, config(witness)) as back:
        wait_for(lambda: f"cosigned {size} entries" in (city(back)["problem"] or ""), "what the witness knows")
        # Grown beyond what the witness has seen, it is still another log.
        agent = back.agent()
        while checkpoint(back)["size"] <= size:
            agent.execute("text_digest", {"text": "again"})
        wait_for(lambda: "(422)" in (city(back)["problem"] or ""), "a refusal")
        assert city(back)["has_cosigned"] is False
        wait_for(lambda: '"outcome":"inconsistent"' in back.log.read_text(), "the gateway's line")
    wait_for(lambda: "a log is not what it was" in witness.log.read_text(), "the witness's line")


def copy_of_state(gate: Gateway, to: Path) -> None:
    """All files of its state directory, of one moment."""
    notary = gate.child("notary")
    notary.suspend()
    try:
        shutil.copytree(gate.state, to, symlinks=True, ignore=lambda folder, names: sockets(Path(folder), names))
    finally:
        notary.resume()


def sockets(folder: Path, names: list[str]) -> list[str]:
    return [name for name in names if (folder / name).is_socket()]


class Shown:
    """Two histories of one log, shown to a witness by turns as fast as it answers; only one can be cosigned."""

    def __init__(self, witness: WitnessProcess) -> None:
        self.witness = witness
        self.base = PlayedLog().grown(1)
        witness.log_keys.write_text(f"{self.base.key.text}\n")
        self.cosigned: list[tuple[str, int]] = []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._show, args=(word,)) for word in ("leaf", "other")]

    def __enter__(self) -> "Shown":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(ANSWER_SECONDS)

    def _show(self, word: str) -> None:
        size, known = 2, 0
        with httpx.Client(timeout=ANSWER_SECONDS, base_url=f"http://{self.witness.address}") as client:
            while not self._is_over.is_set():
                log = self.base.grown(size, word)
                try:
                    said = client.post("/add-checkpoint", content=log.request(known))
                except httpx.TransportError:
                    self._is_over.wait(LOOK_AGAIN_SECONDS)  # the next witness starts meanwhile
                    continue
                if said.status_code == 200:
                    self.cosigned.append((word, log.size))
                    known, size = log.size, size + 1
                elif said.status_code == 409:
                    known = int(said.text)
                    size = max(size, known)


def test_a_witness_that_is_killed_again_and_again_never_cosigns_two_trees(tmp_path: Path) -> None:
    with witness_process(tmp_path / "w") as witness:
        histories = Shown(witness)
        witness.start()
        with histories as shown:
            for _ in range(3):
                count = len(shown.cosigned)
                wait_for(lambda count=count: len(shown.cosigned) > count + 2, "more cosignatures")  # type: ignore[misc]
                witness.stop(signal.SIGKILL)
                witness.start()
            count = len(shown.cosigned)
            wait_for(lambda: len(shown.cosigned) > count, "another one")
            witness.stop(signal.SIGKILL)
        ((word, last),) = {(word, max(size for _, size in shown.cosigned)) for word, _ in shown.cosigned}
        witness.start()
        other = "other" if word == "leaf" else "leaf"
        # Whichever history asks first: the size that was cosigned before the kill is known after it.
        assert int(witness.add(shown.base.grown(last + 9, other).request(0)).text) >= last
        known = int(witness.add(shown.base.grown(last + 9, word).request(0)).text)
        assert witness.add(shown.base.grown(last + 9, other).request(known)).status_code == 422
        assert witness.add(shown.base.grown(last + 9, word).request(known)).status_code == 200


def test_one_witness_at_a_time_is_in_a_folder_and_its_commands_say_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with witness_process(tmp_path / "w") as witness:
        log = PlayedLog()
        witness.log_keys.write_text(f"{log.key.text}\n")
        witness.start()
        more: list[str | Path] = ["--log-key", witness.log_keys]
        second = run("run", "--state", witness.state, "--listen", "127.0.0.1:0", *more)
        assert (second.returncode, "another process" in second.stderr) == (Exit.LOCKED, True)
        assert run("key", "--state", witness.state).stdout.strip() == witness.key
        made = run("key", "--state", tmp_path / "w3", "--name", "other.example/w")
        assert (made.returncode, made.stdout.startswith("other.example/w+")) == (Exit.OK, True)
        elsewhere = ["witness", "run", "--state", str(tmp_path / "w2"), "--log-key", str(witness.log_keys)]
        assert cli([*elsewhere, "--listen", witness.address]) == Exit.UNAVAILABLE
        assert "in use" in capsys.readouterr().err
        assert cli([*elsewhere, "--listen", "nowhere"]) == Exit.USAGE
        wrong = tmp_path / "wrong.keys"
        wrong.write_text(f"{log.key.text}\n{witness.key}\n")
        refused = run("run", "--state", tmp_path / "w2", "--listen", "127.0.0.1:0", "--log-key", wrong)
        assert (refused.returncode, f"{wrong}:2" in refused.stderr) == (Exit.CONFIG, True)


def test_a_witness_serves_on_a_unix_socket_and_takes_no_large_body(tmp_path: Path) -> None:
    log = PlayedLog().grown(2)
    keys, path = tmp_path / "log.keys", tmp_path / "witness.sock"
    keys.write_text(f"{log.key.text}\n")
    command = [
        sys.executable, "-m", "supervisor.cli", "witness", "run", "--state", str(tmp_path / "w"), "--socket", str(path),
        "--log-key", str(keys),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: takes_connections(path), "a witness on its socket")
            transport = httpx.HTTPTransport(uds=str(path))
            with httpx.Client(transport=transport, base_url="http://witness", timeout=ANSWER_SECONDS) as client:
                assert client.post("/add-checkpoint", content=log.request(0)).status_code == 200
                assert client.post("/add-checkpoint", content=b"x" * 100_000).status_code == 413
                assert client.get("/add-checkpoint").status_code == 405
                assert client.get("/metrics").status_code == 404
            assert oct(path.stat().st_mode & 0o777) == "0o660"
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(ANSWER_SECONDS) == Exit.OK


def test_a_witness_serves_tls_where_it_has_a_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = made_certificate(tmp_path, "127.0.0.1")
    more = ["--tls-certificate", str(certificate), "--tls-key", str(tmp_path / "key.pem")]
    log = PlayedLog().grown(2)
    with witness_process(tmp_path / "w") as witness:
        witness.log_keys.write_text(f"{log.key.text}\n")
        witness.trusts(certificate)
        witness.start(*more)
        assert witness.add(log.request(0)).status_code == 200
        listen = ("run", "--state", str(tmp_path / "w2"), "--log-key", str(witness.log_keys))
        assert cli(["witness", *listen, "--socket", str(tmp_path / "socket"), *more]) == Exit.USAGE
        assert "reverse proxy" in capsys.readouterr().err
        (tmp_path / "key.pem").write_text("")
        damaged = run(*listen, "--listen", "127.0.0.1:0", *more)
        assert (damaged.returncode, str(tmp_path / "key.pem") in damaged.stderr) == (Exit.CONFIG, True)


def takes_connections(path: Path) -> bool:
    """Whether anybody listens there; the file is there a moment before that."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
